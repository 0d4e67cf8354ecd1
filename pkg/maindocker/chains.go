package maindocker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// dockerTable is Docker's nftables table with firewall-backend nftables.
const dockerTable = "ip docker-bridges"

// dockerJumps are the jumps that every version of Docker creates.
var dockerJumps = []host.Jump{
	{Table: userChain.table, From: "FORWARD", To: userChain.chain},
	{Table: "nat", From: "PREROUTING", To: "DOCKER"},
	{Table: "nat", From: "OUTPUT", To: "DOCKER"},
}

// forwardJumps are the targets of Docker's jump from FORWARD: the first since
// 28.1, the second before.
var forwardJumps = []string{"DOCKER-FORWARD", "DOCKER"}

func missingChains(chains *host.Chains) (missing []string, err error) {
	jumps, err := chains.Missing(dockerJumps...)
	if err != nil {
		return nil, err
	}
	for _, j := range jumps {
		missing = append(missing, j.String())
	}
	forwards, err := forwards(chains)
	if err == nil && !forwards {
		missing = append(missing, "the rules for "+linkName)
	}
	return missing, err
}

// forwards reports whether FORWARD jumps to a chain of Docker that has rules.
// The chain of containers has none if no port is published.
func forwards(chains *host.Chains) (bool, error) {
	for _, to := range forwardJumps {
		missing, err := chains.Missing(host.Jump{Table: userChain.table, From: "FORWARD", To: to})
		if err != nil {
			return false, err
		}
		if len(missing) > 0 {
			continue
		}
		rules, err := chains.Rules(userChain.table, to)
		return to == "DOCKER" || len(rules) > 0, err
	}
	return false, nil
}

// missingPorts lists the published ports of docker0's containers for which
// there is no rule.
func (b Bridge) missingPorts(ctx context.Context, chains *host.Chains) (missing []string, err error) {
	docker, err := b.Docker()
	if err != nil {
		return nil, err
	}
	published, err := docker.Published(ctx, "bridge")
	if err != nil {
		return nil, err
	}
	rules, err := chains.Rules("nat", "DOCKER")
	if err != nil {
		return nil, err
	}
	for _, p := range published {
		protocol, port := "-p "+p.Protocol+" ", fmt.Sprintf("--dport %d ", p.Port)
		leads := func(rule string) bool { return strings.Contains(rule, protocol) && strings.Contains(rule, port) }
		if !slices.ContainsFunc(rules, leads) {
			missing = append(missing, fmt.Sprintf("port %d/%s of container %s", p.Port, p.Protocol, p.Container))
		}
	}
	return missing, nil
}
