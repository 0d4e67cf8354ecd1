package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// PublishedPort is a port of the engine's machine that leads to a node.
type PublishedPort struct {
	Address        netip.Addr
	Port, NodePort uint16
	Protocol       string // "tcp" or "udp"
}

// NodeMount is a file or directory of the engine's machine on a node.
type NodeMount struct {
	Path, NodePath string // absolute
	ReadOnly       bool
}

// ParsePort reads [ADDRESS:]PORT:NODEPORT[/PROTOCOL]. Without an address, the port is
// open to the engine's machine alone.
func ParsePort(s string) (p PublishedPort, err error) {
	must := errors.New("must be [ADDRESS:]PORT:NODEPORT[/udp], such as 8080:30080 or 0.0.0.0:53:30053/udp")
	ports, protocol, given := strings.Cut(s, "/")
	if !given {
		protocol = "tcp"
	}
	words := strings.Split(ports, ":")
	if len(words) < 2 || len(words) > 3 || protocol != "tcp" && protocol != "udp" {
		return p, must
	}
	p = PublishedPort{Address: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Protocol: protocol}
	if len(words) == 3 {
		if p.Address, err = netip.ParseAddr(words[0]); err != nil || !p.Address.Is4() {
			return p, must
		}
		words = words[1:]
	}
	outside, err := strconv.ParseUint(words[0], 10, 16)
	if err != nil || outside == 0 {
		return p, must
	}
	inside, err := strconv.ParseUint(words[1], 10, 16)
	if err != nil || inside == 0 {
		return p, must
	}
	p.Port, p.NodePort = uint16(outside), uint16(inside)
	return p, nil
}

// nodePaths are the mounts that every node of a cluster has.
var nodePaths = []string{"/", "/run", "/tmp", "/var/lib", "/lib/modules", "/opt/kube-bootstrap"}

// ParseMount reads PATH:NODEPATH[:ro].
func ParseMount(s string) (m NodeMount, err error) {
	words := strings.Split(s, ":")
	if len(words) == 3 && words[2] == "ro" {
		m.ReadOnly, words = true, words[:2]
	}
	if len(words) != 2 || !path.IsAbs(words[0]) || !path.IsAbs(words[1]) {
		return m, errors.New("must be PATH:NODEPATH[:ro] with absolute paths, such as /srv/data:/data:ro")
	}
	m.Path, m.NodePath = path.Clean(words[0]), path.Clean(words[1])
	if slices.Contains(nodePaths, m.NodePath) {
		return m, fmt.Errorf("must not have the target %s, which every node has already", m.NodePath)
	}
	return m, nil
}

// each checks a list with the parser of its items.
func each[T any](parse func(string) (T, error)) func(string) string {
	return func(s string) string {
		for _, item := range strings.Split(s, ",") {
			if _, err := parse(item); err != nil {
				return fmt.Sprintf("%q %v", item, err)
			}
		}
		return ""
	}
}
