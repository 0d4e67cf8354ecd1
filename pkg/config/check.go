package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

// A check returns what a value must be, or nothing if it is. Checks get values that are set.

// on returns a check of values as a check of pointers to the field of a setting.
func on[T any](check func(T) string) func(field any) string {
	return func(field any) string { return check(*field.(*T)) }
}

// The checks of texts that have a form.
var (
	interfaceName = like(`^[^\s/:]{1,15}$`, "must be the name of an interface, such as eth0")
	restartPolicy = like(`^(no|always|unless-stopped|on-failure(:[0-9]+)?)$`,
		"must be no, on-failure, on-failure:N, always or unless-stopped")
	clusterName = like(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`,
		"must be lower-case letters, digits and -, a letter first, at most 40")
	token = like(`^[a-z0-9]{6}\.[a-z0-9]{16}$`,
		"must be 6 characters, a dot and 16 characters, all of a-z and 0-9; `kube-bootstrap token create` on the "+
			"control-plane host prints one")
	caCertHash = like(`^sha256:[0-9a-f]{64}$`,
		"must be sha256: and 64 hex digits; `kube-bootstrap token create` on the control-plane host prints it")
	certificateKey = like(`^[0-9a-f]{64}$`,
		"must be 64 hex digits; `kube-bootstrap token create --control-plane` on a control-plane host prints it")
)

// The checks of ports.
var (
	port       = between(1, 65535, "must be a port, 1 to 65535")
	portOrNone = between(0, 65535, "must be a port, 1 to 65535, or 0 for no registry")
)

// between returns the check of a whole number with limits.
func between(least, most int, must string) func(int) string {
	return func(n int) string {
		if n < least || n > most {
			return must
		}
		return ""
	}
}

// like returns the check that a text has the form of a regular expression.
func like(form, must string) func(string) string {
	pattern := regexp.MustCompile(form)
	return func(s string) string {
		if pattern.MatchString(s) {
			return ""
		}
		return must
	}
}

func kubernetesVersion(s string) string {
	_, _, err := catalog.Kubernetes(s)
	return must(err)
}

func etcdVersion(s string) string    { return must(catalog.CheckEtcd(s)) }
func flannelVersion(s string) string { return must(catalog.CheckFlannel(s)) }

// must returns the text of err, or "" if the value is valid.
func must(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func domainName(s string) string {
	if problems := validation.IsDNS1123Subdomain(s); len(problems) > 0 {
		return "must be lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	}
	return ""
}

// longestName is the limit of a label in Kubernetes, and a node has its name as a label.
const longestName = validation.LabelValueMaxLength

// HostName returns what the name of a host must be, or "" if it is.
func HostName(s string) string {
	if len(s) > longestName {
		return fmt.Sprintf("must have at most %d characters", longestName)
	}
	return domainName(s)
}

func certificateNames(names []string) string {
	for _, name := range names {
		_, err := netip.ParseAddr(name)
		if err != nil && domainName(strings.TrimPrefix(name, "*.")) != "" {
			return "must be DNS names, such as k8s.example.com or *.example.com, and IP addresses; " +
				strconv.Quote(name) + " is neither"
		}
	}
	return ""
}

func absolute(s string) string {
	if !filepath.IsAbs(s) || filepath.Clean(s) != s {
		return "must be an absolute path without . and .."
	}
	return ""
}

func socket(s string) string {
	if path := strings.TrimPrefix(s, "unix://"); absolute(path) != "" {
		return "must be the path of a socket, such as /run/cri-dockerd.sock"
	}
	return ""
}
