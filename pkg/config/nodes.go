package config

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
