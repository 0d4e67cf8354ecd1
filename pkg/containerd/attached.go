package containerd

import (
	"encoding/json"
	"net/netip"
)

// attached is a pod with an interface on docker0, as its CNI plugins noted it.
type attached struct {
	sandbox string // its id in containerd
	pod     string // "kube-system/coredns-1"
	address netip.Addr
	veth    string // the end of its interface that is on the host
}

// cniResult is what libcni keeps of each interface until it is removed.
type cniResult struct {
	ContainerID string      `json:"containerId"`
	Netns       string      `json:"netns"`
	Args        [][2]string `json:"cniArgs"`
	Result      struct {
		Interfaces []struct{ Name, Sandbox string }
		IPs        []struct{ Address netip.Prefix }
	} `json:"result"`
}

// attached lists the pods that have an interface on docker0. It reads files
// only, as it is asked every few seconds. A pod from before the last reboot has
// no network namespace any more, and a file that is damaged names no pod.
func (r Runtime) attached() []attached {
	var all []attached
	for _, path := range r.Files.Match("/var/lib/cni/results/" + networkName + "-*") {
		data, err := r.Files.Read(path)
		var c cniResult
		if err != nil || json.Unmarshal(data, &c) != nil || !r.Files.Exists(c.Netns) || len(c.Result.IPs) == 0 {
			continue
		}
		all = append(all, attached{c.ContainerID, c.pod(), c.Result.IPs[0].Address.Addr(), c.veth()})
	}
	return all
}

func (c cniResult) pod() string {
	args := map[string]string{}
	for _, a := range c.Args {
		args[a[0]] = a[1]
	}
	return args["K8S_POD_NAMESPACE"] + "/" + args["K8S_POD_NAME"]
}

// veth is the only interface of the host beside the bridge.
func (c cniResult) veth() string {
	for _, i := range c.Result.Interfaces {
		if i.Sandbox == "" && i.Name != bridgeName {
			return i.Name
		}
	}
	return ""
}
