package containerd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

const bridgeName = "docker0"

// attached is a pod with an interface on docker0, read from libcni's cache.
type attached struct {
	cniNote
	address netip.Addr
	veth    string // the host's end of the pod's veth pair
}

// cniNote is a file in libcni's cache, which exists as long as the interface.
type cniNote struct {
	Sandbox      string      `json:"containerId"` // its id in containerd
	Netns        string      `json:"netns"`       // its network namespace, as a path
	Args         [][2]string `json:"cniArgs"`
	Capabilities struct {
		PortMappings []json.RawMessage `json:"portMappings"`
	} `json:"capabilityArgs"`
	Result json.RawMessage `json:"result"` // of its CNI plugins
}

// cniResult is the part of a CNI result that is used here.
type cniResult struct {
	Interfaces []struct{ Name, Sandbox string }
	IPs        []struct{ Address netip.Prefix }
}

// attachedPods lists the pods with an interface on docker0. It only reads files, because it runs after each change of
// a link. It skips damaged files, and pods from before the last reboot.
func attachedPods(files host.Files) (all []attached) {
	for _, path := range files.Match("/var/lib/cni/results/" + networkName + "-*") {
		data, err := files.Read(path)
		var note cniNote
		var result cniResult
		if err != nil || json.Unmarshal(data, &note) != nil || json.Unmarshal(note.Result, &result) != nil {
			continue
		}
		if files.Exists(note.Netns) && len(result.IPs) > 0 {
			all = append(all, attached{note, result.IPs[0].Address.Addr(), result.veth()})
		}
	}
	return all
}

// pod returns "kube-system/coredns-1".
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

// FollowLease is the step that keeps pods reachable after a change of the lease. It removes pods whose address is
// outside of this host's subnet, which the kubelet creates again, and attaches other pods to a new docker0. Pods on
// the host network are not affected.
func FollowLease(files host.Files, socket Socket, lease func() (subnet.Lease, error)) step.Step {
	find := func(context.Context) ([]lostPod, error) { return findLost(files, lease) }
	return repairEach("keep-pods", "keep pods on this host's subnet", find, lostPod.String,
		func(ctx context.Context, p lostPod) error {
			if p.detached {
				return links.AttachToBridge(p.veth, bridgeName)
			}
			step.Report(ctx, "remove the pod "+p.pod(), 0, 0)
			return socket.withCRI(ctx,
				func(cri runtime.RuntimeServiceClient) error { return removeSandbox(ctx, cri, p.Sandbox) })
		})
}

// lostPod is a pod that cannot be reached.
type lostPod struct {
	attached
	subnet   netip.Prefix // of this host
	detached bool         // its interface is not a port of docker0; otherwise its address is in another subnet
}

func (p lostPod) String() string {
	if p.detached {
		return fmt.Sprintf("attach %s of the pod %s to %s", p.veth, p.pod(), bridgeName)
	}
	return fmt.Sprintf("recreate the pod %s: its address %s is not in %s", p.pod(), p.address, p.subnet)
}

// findLost returns no pods if there is no lease yet, or if docker0 is missing.
func findLost(files host.Files, lease func() (subnet.Lease, error)) ([]lostPod, error) {
	leased, err := lease()
	if err != nil {
		return nil, nil
	}
	ports, bridge, err := links.BridgePorts(bridgeName)
	if err != nil {
		return nil, err
	}
	var moved, detached []lostPod
	for _, p := range attachedPods(files) {
		onBridge, exists := ports[p.veth]
		switch {
		case !leased.Subnet.Contains(p.address):
			moved = append(moved, lostPod{p, leased.Subnet.Masked(), false})
		case bridge && exists && !onBridge:
			detached = append(detached, lostPod{p, leased.Subnet.Masked(), true})
		}
	}
	return append(moved, detached...), nil
}

// repairEach returns the step that repairs each item that find finds.
func repairEach[T any](
	id step.ID, name string, find func(context.Context) ([]T, error), difference func(T) string,
	repair func(context.Context, T) error,
) step.Step {
	return step.Step{
		ID: id, Name: name,
		Check: func(ctx context.Context) (diff step.Diff, err error) {
			all, err := find(ctx)
			for _, one := range all {
				diff = append(diff, difference(one))
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			all, err := find(ctx)
			return errors.Join(err, host.Each(all, func(one T) error { return repair(ctx, one) }))
		},
	}
}

// hostPortJumps are the jumps to portmap's chain.
var hostPortJumps = []netfilter.Jump{
	{Table: "nat", From: "PREROUTING", To: hostPortChain},
	{Table: "nat", From: "OUTPUT", To: hostPortChain},
}

const portmap = cniBinDir + "/portmap"

// KeepHostPorts is the step that restores the rules by which portmap forwards ports of this host to a new pod. A
// second call for the same interface adds the missing rules.
func KeepHostPorts(files host.Files) step.Step {
	find := func(context.Context) ([]attached, error) { return withoutHostPorts(files) }
	difference := func(p attached) string { return "open the host ports of the pod " + p.pod() }
	return repairEach("keep-host-ports", "keep the host ports of pods", find, difference, openHostPorts)
}

// withoutHostPorts returns the pods whose host ports no rule forwards.
func withoutHostPorts(files host.Files) (closed []attached, err error) {
	pods := slices.DeleteFunc(attachedPods(files), func(p attached) bool { return len(p.hostPorts()) == 0 })
	if len(pods) == 0 || !host.HasProgram("iptables") {
		return nil, nil
	}
	chains, err := netfilter.ReadChains()
	if err != nil {
		return nil, err
	}
	lost, err := chains.Missing(hostPortJumps...)
	if err != nil || len(lost) > 0 {
		return pods, err
	}
	rules, err := chains.Rules("nat", hostPortChain)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		open, err := opens(chains, rules, p.Sandbox)
		if err != nil {
			return nil, err
		}
		if !open {
			closed = append(closed, p)
		}
	}
	return closed, nil
}

// opens reports whether a rule about the sandbox jumps to a chain that is not empty.
func opens(chains *netfilter.Chains, rules []string, sandbox string) (bool, error) {
	at := slices.IndexFunc(rules, func(rule string) bool { return strings.Contains(rule, sandbox) })
	if at < 0 {
		return false, nil
	}
	words := strings.Fields(rules[at])
	own, err := chains.Rules("nat", words[len(words)-1])
	return len(own) > 0, err
}

// openHostPorts calls portmap with the same input as the container runtime.
func openHostPorts(ctx context.Context, p attached) error {
	config, err := json.Marshal(object{
		"cniVersion": "1.0.0", "name": networkName, "type": "portmap",
		"capabilities":  object{"portMappings": true},
		"runtimeConfig": object{"portMappings": p.hostPorts()},
		"prevResult":    p.Result,
	})
	if err != nil {
		return err
	}
	_, err = host.Command{
		Args: []string{portmap}, Stdin: bytes.NewReader(config),
		Env: []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + p.Sandbox, "CNI_NETNS=" + p.Netns, "CNI_IFNAME=eth0",
			"CNI_PATH=" + cniBinDir},
	}.Run(ctx)
	return step.Wrap(err, "open the host ports of the pod %s", p.pod())
}
