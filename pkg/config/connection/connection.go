// Package connection describes how a machine is reached over SSH.
package connection

import (
	"cmp"
	"errors"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// SSH holds the settings of a connection to a machine. ~/.ssh/config determines what is not set.
type SSH struct {
	User         string
	Port         int // 0: not set
	IdentityFile string
	ProxyJump    string // hosts on the way, comma separated; none: a direct connection

	AcceptNewHostKeys bool
}

// NodeFields are the fields of ssh in an entry of nodes.
var NodeFields = []string{"user", "port", "identityFile", "proxyJump"}

// Over returns s with the defaults for what is not set.
func (s SSH) Over(defaults SSH) SSH {
	return SSH{
		User: cmp.Or(s.User, defaults.User), Port: cmp.Or(s.Port, defaults.Port),
		IdentityFile: cmp.Or(s.IdentityFile, defaults.IdentityFile), ProxyJump: cmp.Or(s.ProxyJump, defaults.ProxyJump),
		AcceptNewHostKeys: defaults.AcceptNewHostKeys,
	}
}

// ParsePort reads a port; an empty text is 0.
func ParsePort(s string) (int, error) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("must be a port, 1 to 65535")
	}
	return int(n), nil
}

// PortText returns the text that ParsePort reads.
func PortText(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}

var (
	hop  = regexp.MustCompile(`^([^\s@,-][^\s@,]*@)?[^\s@,:/-][^\s@,/]*$`)
	user = regexp.MustCompile(`^[^\s@:-][^\s@:]*$`)
)

// CheckUser returns what the name of a user must be, or "" if it is.
func CheckUser(s string) string {
	if user.MatchString(s) {
		return ""
	}
	return "must be the name of a user"
}

// CheckProxyJump returns what the hosts on the way must be, or "" if they are.
func CheckProxyJump(s string) string {
	for one := range strings.SplitSeq(s, ",") {
		if !hop.MatchString(one) {
			return "must be [USER@]HOST[:PORT], comma separated, or none"
		}
	}
	return ""
}

// CheckAddress returns what the address of a machine must be, or "" if it is.
func CheckAddress(s string) string {
	_, err := netip.ParseAddr(s)
	name := strings.ToLower(strings.ReplaceAll(s, "_", "-"))
	if err == nil || len(validation.IsDNS1123Subdomain(name)) == 0 {
		return ""
	}
	return "must be an address, a DNS name, or a host of ~/.ssh/config"
}
