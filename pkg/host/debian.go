package host

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
)

// mirrorVariable names a Debian mirror for machines that are not Debian.
const mirrorVariable = "KUBE_BOOTSTRAP_DEBIAN_MIRROR"

// debianSource matches a Debian mirror, but not Ubuntu's, in both formats of apt's sources.
var debianSource = regexp.MustCompile(`(?m)^(?:URIs:|deb(?:\s+\[[^\]]*\])?)\s+(\S+/debian)/?(?:\s|$)`)

// DebianMirror returns KUBE_BOOTSTRAP_DEBIAN_MIRROR, or the mirror that this machine's apt uses.
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
	return "", errors.New("apt on this machine has no Debian mirror; set " + mirrorVariable + " to the URL of one")
}
