package config

import (
	"errors"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// SSH holds the settings of a connection to a machine. ~/.ssh/config determines what is not set.
type SSH struct {
	User         string
	Port         int // 0: not set
	IdentityFile string
	ProxyJump    string // hosts on the way, comma separated; none: a direct connection

	AcceptNewHostKeys bool
}

// machineSettings are the settings of a cluster whose nodes are machines.
var machineSettings = sharing(Setting{
	Group: GroupMachines, Verbs: ClusterUp | Named | Engine, Change: EachRun,
}, []Setting{{
	Field: "ssh.user", Flag: "ssh-user", Help: "user on the machines: root, or a user with sudo (empty: that of ~/.ssh/config)",
	check: on(like(`^[^\s@:-][^\s@:]*$`, "must be the name of a user")),
}, {
	Field: "ssh.port", Flag: "ssh-port", Help: "port of SSH on the machines (empty: that of ~/.ssh/config, or 22)", as: optionalPort,
}, {
	Field: "ssh.identityFile", Flag: "ssh-identity-file", Help: "private key that is offered first (empty: those of ~/.ssh/config and the agent)",
}, {
	Field: "ssh.proxyJump", Flag: "ssh-proxy-jump",
	Help:  "hosts on the way to the machines: [USER@]HOST[:PORT], comma separated; none: a direct connection",
	check: on(proxyJump),
}, {
	Field: "ssh.acceptNewHostKeys", Flag: "accept-new-host-keys", Default: "false",
	Help: "accept the host key of a machine that known_hosts does not contain; a changed key is always refused",
}})

// NodeSSHFields are the fields of ssh in an entry of nodes.
var NodeSSHFields = []string{"user", "port", "identityFile", "proxyJump"}

// optionalPort is a port whose zero value is not set.
var optionalPort = kind("int", parseOptionalPort, func(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
})

func parseOptionalPort(s string) (int, error) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || port(n) != "" {
		return 0, errors.New(port(0))
	}
	return n, nil
}

var hop = regexp.MustCompile(`^([^\s@,-][^\s@,]*@)?[^\s@,:/-][^\s@,/]*$`)

func proxyJump(s string) string {
	for one := range strings.SplitSeq(s, ",") {
		if !hop.MatchString(one) {
			return "must be [USER@]HOST[:PORT], comma separated, or none"
		}
	}
	return ""
}

// MachineAddress returns what the address of a machine must be, or "" if it is.
func MachineAddress(s string) string {
	if _, err := netip.ParseAddr(s); err == nil || domainName(strings.ToLower(strings.ReplaceAll(s, "_", "-"))) == "" {
		return ""
	}
	return "must be an address, a DNS name, or a host of ~/.ssh/config"
}

// Machines reports whether the nodes of the cluster are machines.
func (c Config) Machines() bool { return len(c.Nodes) > 0 && c.Nodes[0].Address != "" }

// Over returns s with the defaults for what is not set.
func (s SSH) Over(defaults SSH) SSH {
	for _, field := range []struct {
		own  *string
		from string
	}{{&s.User, defaults.User}, {&s.IdentityFile, defaults.IdentityFile}, {&s.ProxyJump, defaults.ProxyJump}} {
		if *field.own == "" {
			*field.own = field.from
		}
	}
	if s.Port == 0 {
		s.Port = defaults.Port
	}
	s.AcceptNewHostKeys = defaults.AcceptNewHostKeys
	return s
}
