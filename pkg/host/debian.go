package host

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
)

// mirrorVariable names a Debian mirror on a machine that has none of its own.
const mirrorVariable = "KUBE_BOOTSTRAP_DEBIAN_MIRROR"

// A Debian mirror in either form of apt's sources; Ubuntu's end in /ubuntu.
var debianSource = regexp.MustCompile(`(?m)^(?:URIs:|deb(?:\s+\[[^\]]*\])?)\s+(\S+/debian)/?(?:\s|$)`)

// DebianMirror returns where Debian packages come from: the mirror that this
// machine's apt uses, or the one that KUBE_BOOTSTRAP_DEBIAN_MIRROR names.
func DebianMirror() (string, error) {
	if mirror := os.Getenv(mirrorVariable); mirror != "" {
		return mirror, nil
	}
	found, _ := filepath.Glob("/etc/apt/sources.list.d/*") // the pattern is well-formed
	for _, path := range append([]string{"/etc/apt/sources.list"}, found...) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // a missing list has no mirror
		}
		if m := debianSource.FindSubmatch(data); m != nil {
			return string(m[1]), nil
		}
	}
	return "", errors.New("apt on this machine knows no Debian mirror; name one in " + mirrorVariable)
}
