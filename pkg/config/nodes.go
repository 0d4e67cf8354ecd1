package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NodesField is the one field of a file that is no single setting.
const NodesField = "nodes"

// RoleControlPlane is what Kubernetes calls a master; in nodes both are known.
const RoleControlPlane = "control-plane"

// Node is one entry of nodes: what sets a node, or several equal ones, apart.
type Node struct {
	Role      string // RoleMaster or RoleWorker
	Name      string // empty: by role and number
	Count     int
	HostImage string // empty: that of the cluster

	// Own holds the settings of the node itself, of nodeSettings and of
	// nodeFields; all others are zero.
	Own Config
}

// nodeFields are the names of nodeSettings in an entry of nodes.
var nodeFields = map[string]string{
	"labels": "nodeLabels", "taints": "nodeTaints", "cpus": "nodeCPUs", "memory": "nodeMemory", "disk": "nodeDisk", "kubelet": "kubeletConfig",
	"ports": "nodePorts", "mounts": "nodeMounts",
}

// NodeFields are the names of the fields of an entry of nodes.
var NodeFields = []string{"role", "name", "count", "labels", "taints", "cpus", "memory", "disk", "hostImage", "dockerVersion", "kubelet", "ports", "mounts"}

// Args returns the node's own settings as flags of its host verb. It includes
// empty values, because they reset an earlier value.
func (n Node) Args() []string {
	var args []string
	for _, s := range nodeSettings {
		args = append(args, "--"+s.Flag+"="+s.at(&n.Own).get())
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

// A kubelet may set labels of its own node in these domains that Kubernetes
// reserves, and these labels. The kubelet and the API server reject all others.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/plugin/pkg/admission/noderestriction/admission.go#L650-L664
var (
	allowedPrefixes = []string{"node.kubernetes.io", "kubelet.kubernetes.io"}
	allowedLabels   = []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
)

func nodeLabels(words []string) string {
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return fmt.Sprintf("%q must be KEY=VALUE, such as disk=ssd", word)
		}
		if reserved(key) {
			return fmt.Sprintf("%s is in a domain that Kubernetes keeps for itself; use one of your own, or %s/...", key, allowedPrefixes[0])
		}
	}
	return ""
}

func reserved(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed || slices.Contains(allowedPrefixes, domain) || slices.Contains(allowedLabels, key) {
		return false
	}
	within := func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }
	return within("kubernetes.io") || within("k8s.io")
}

var taintEffects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

func nodeTaints(words []string) string {
	for _, word := range words {
		taint, effect, ok := strings.Cut(word, ":")
		key, value, _ := strings.Cut(taint, "=")
		if !ok || !slices.Contains(taintEffects, effect) || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return fmt.Sprintf("%q must be KEY=VALUE:EFFECT, such as dedicated=db:NoSchedule; the effects are %s", word, strings.Join(taintEffects, ", "))
		}
	}
	return ""
}

var (
	cpus   = quantity((*resource.Quantity).MilliValue, 100, "must be a number of processors of at least 0.1, such as 2 or 1.5")
	amount = quantity((*resource.Quantity).Value, 1<<20, "must be an amount, such as 2Gi or 500Mi")
)

// quantity returns the check of a quantity of at least this value.
func quantity(value func(*resource.Quantity) int64, least int64, must string) func(string) string {
	return func(s string) string {
		if q, err := resource.ParseQuantity(s); err != nil || value(&q) < least {
			return must
		}
		return ""
	}
}
