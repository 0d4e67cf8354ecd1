package containerd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// hostPortJumps are the jumps to portmap's chain.
var hostPortJumps = []netfilter.Jump{
	{Table: "nat", From: "PREROUTING", To: hostPortChain},
	{Table: "nat", From: "OUTPUT", To: hostPortChain},
}

const portmap = cniBinDir + "/portmap"

// KeepHostPorts restores the rules that forward ports of this host to pods.
// portmap adds these rules when a pod starts. A second call for the same
// interface adds the missing rules and does not restart the pod.
func KeepHostPorts(files host.Files) step.Step {
	find := func(context.Context) ([]attached, error) { return withoutHostPorts(files) }
	difference := func(p attached) string { return "open the host ports of the pod " + p.pod() }
	return repairEach("keep the host ports of pods", find, difference, openHostPorts)
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

// opens reports whether a rule with the sandbox ID in its comment jumps to a
// chain that is not empty.
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
		Env: []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + p.Sandbox, "CNI_NETNS=" + p.Netns, "CNI_IFNAME=eth0", "CNI_PATH=" + cniBinDir},
	}.Run(ctx)
	if err != nil {
		return fmt.Errorf("open the host ports of the pod %s: %w", p.pod(), err)
	}
	return nil
}
