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

// NodesField is the one field of a file that is no single setting.
const NodesField = "nodes"

// AliasControlPlane is the name of the role in an entry of nodes, which also accepts RoleMaster.
const AliasControlPlane = "control-plane"

// NodeEntry is one entry of nodes: what sets a node, or several equal ones, apart.
type NodeEntry struct {
	Role      string // RoleMaster or RoleWorker
	Name      string // empty: by role and number
	Count     int
	HostImage string // empty: that of the cluster
	Address   string // of a machine; empty: the node is a container

	// Settings holds the settings of the node itself, of nodeSettings, of nodeFields and of connection.SSH;
	// all others are zero.
	Settings Config
}

// nodeFields are the names of nodeSettings in an entry of nodes.
var nodeFields = map[string]string{
	"labels": "nodeLabels", "taints": "nodeTaints", "cpus": "nodeCPUs", "memory": "nodeMemory", "disk": "nodeDisk",
	"kubelet": "kubeletConfig",
	"ports":   "nodePorts", "mounts": "nodeMounts",
}

// NodeFields are the names of the fields of an entry of nodes.
var NodeFields = []string{"role", "name", "count", "address", "ssh", "labels", "taints", "cpus", "memory", "disk",
	"hostImage", "dockerVersion", "kubelet", "ports", "mounts"}

// Args returns the node's own settings as flags of its host verb. It includes empty values, because they reset
// an earlier value.
func (n NodeEntry) Args() []string {
	var args []string
	for _, s := range nodeSettings {
		args = append(args, "--"+s.Flag+"="+s.at(&n.Settings).get())
	}
	return args
}

// NodeSetting returns the setting that a field of an entry of nodes means.
func NodeSetting(field string) (Setting, bool) { return Find(nodeFields[field]) }

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

// loopback is the address of a port without one: it is open to the engine's machine alone.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// String returns the text of the port: [ADDRESS:]PORT:NODEPORT[/udp].
func (p PublishedPort) String() string {
	text := fmt.Sprintf("%d:%d", p.Port, p.NodePort)
	if p.Address != loopback {
		text = p.Address.String() + ":" + text
	}
	if p.Protocol != "tcp" {
		text += "/" + p.Protocol
	}
	return text
}

// MarshalText returns the text of the port, which records of nodes hold.
func (p PublishedPort) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads [ADDRESS:]PORT:NODEPORT[/PROTOCOL].
func (p *PublishedPort) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePort(string(text))
	return err
}

// String returns the text of the mount: PATH:NODEPATH[:ro].
func (m NodeMount) String() string {
	if m.ReadOnly {
		return m.Path + ":" + m.NodePath + ":ro"
	}
	return m.Path + ":" + m.NodePath
}

// MarshalText returns the text of the mount, which records of nodes hold.
func (m NodeMount) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads PATH:NODEPATH[:ro].
func (m *NodeMount) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMount(string(text))
	return err
}

// ParsePort reads [ADDRESS:]PORT:NODEPORT[/PROTOCOL].
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
	p = PublishedPort{Address: loopback, Protocol: protocol}
	if len(words) == 3 {
		if p.Address, err = netip.ParseAddr(words[0]); err != nil || !p.Address.Is4() {
			return p, must
		}
		words = words[1:]
	}
	for i, port := range []*uint16{&p.Port, &p.NodePort} {
		number, err := strconv.ParseUint(words[i], 10, 16)
		if err != nil || number == 0 {
			return p, must
		}
		*port = uint16(number)
	}
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
