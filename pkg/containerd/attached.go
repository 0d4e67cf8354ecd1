package containerd

import (
	"encoding/json"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// attached is a pod with an interface on docker0, read from libcni's cache.
type attached struct {
	sandbox   string // its id in containerd
	pod       string // "kube-system/coredns-1"
	address   netip.Addr
	veth      string            // the host's end of the pod's veth pair
	netns     string            // its network namespace, as a path
	hostPorts []json.RawMessage // port mappings from host ports to the pod
	result    json.RawMessage   // of its CNI plugins
}

// cniNote is a file in libcni's cache, which exists as long as the interface.
type cniNote struct {
	ContainerID  string      `json:"containerId"`
	Netns        string      `json:"netns"`
	Args         [][2]string `json:"cniArgs"`
	Capabilities struct {
		PortMappings []json.RawMessage `json:"portMappings"`
	} `json:"capabilityArgs"`
	Result json.RawMessage `json:"result"`
}

// cniResult is the part of a CNI result that is used here.
type cniResult struct {
	Interfaces []struct{ Name, Sandbox string }
	IPs        []struct{ Address netip.Prefix }
}

// attachedPods lists the pods that have an interface on docker0. It only reads
// files, because it runs after each change of a link. It skips damaged files
// and pods from before the last reboot, which have no network namespace.
func attachedPods(files host.Files) []attached {
	var all []attached
	for _, path := range files.Match("/var/lib/cni/results/" + networkName + "-*") {
		data, err := files.Read(path)
		var note cniNote
		var result cniResult
		if err != nil || json.Unmarshal(data, &note) != nil || json.Unmarshal(note.Result, &result) != nil {
			continue
		}
		if files.Exists(note.Netns) && len(result.IPs) > 0 {
			all = append(all, attached{
				sandbox: note.ContainerID, pod: note.pod(), address: result.IPs[0].Address.Addr(), veth: result.veth(),
				netns: note.Netns, hostPorts: note.hostPorts(), result: note.Result,
			})
		}
	}
	return all
}

func (n cniNote) pod() string {
	args := map[string]string{}
	for _, a := range n.Args {
		args[a[0]] = a[1]
	}
	return args["K8S_POD_NAMESPACE"] + "/" + args["K8S_POD_NAME"]
}

// hostPorts returns the port mappings of a pod that have a host port.
func (n cniNote) hostPorts() (ports []json.RawMessage) {
	for _, raw := range n.Capabilities.PortMappings {
		var m struct{ HostPort int }
		if json.Unmarshal(raw, &m) == nil && m.HostPort > 0 {
			ports = append(ports, raw)
		}
	}
	return ports
}

// veth returns the only interface on the host other than the bridge.
func (c cniResult) veth() string {
	for _, i := range c.Interfaces {
		if i.Sandbox == "" && i.Name != bridgeName {
			return i.Name
		}
	}
	return ""
}
