package maindocker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// dockerTable is Docker's nftables table with firewall-backend nftables.
const dockerTable = "ip docker-bridges"

// dockerJumps are the jumps that every version of Docker creates.
var dockerJumps = []netfilter.Jump{
	{Table: userChain.Table, From: "FORWARD", To: userChain.Chain},
	{Table: "nat", From: "PREROUTING", To: "DOCKER"},
	{Table: "nat", From: "OUTPUT", To: "DOCKER"},
}

// forwardJumps are the targets of Docker's jump from FORWARD: the first since
// 28.1, the second before.
// https://github.com/moby/moby/blob/v28.1.0/libnetwork/drivers/bridge/setup_ip_tables_linux.go#L22
var forwardJumps = []string{"DOCKER-FORWARD", "DOCKER"}

// repairChains restarts Docker only if the missing rules do not return by
// themselves, because a container may be starting or stopping.
func (d Daemon) repairChains(ctx context.Context, now settings) error {
	const limit = time.Second
	missing, err := step.Persists(ctx, limit,
		func(ctx context.Context) (step.Diff, error) { return d.chainsDiff(ctx, now) })
	if err != nil || !missing {
		return err
	}
	return d.rebuild(ctx)
}

// chainsDiff lists the missing rules that Docker creates. Docker creates them
// at its start and does not check them later.
func (d Daemon) chainsDiff(ctx context.Context, now settings) (diff step.Diff, err error) {
	if d.Files.Exists(rebuildFile) {
		diff = append(diff, "finish the restart of Docker, which rebuilds its firewall chains")
	}
	switch {
	case now["iptables"] == false:
		return diff, nil
	case usesNftables(now):
		tables, err := netfilter.NftTables(ctx)
		if err == nil && !slices.Contains(tables, dockerTable) {
			diff = append(diff, "have Docker rebuild the table "+dockerTable+" of nftables")
		}
		return diff, err
	}
	chains, err := netfilter.ReadChains()
	if err != nil {
		return nil, err
	}
	missing, err := missingChains(chains)
	if err != nil {
		return nil, err
	}
	ports, err := d.missingPorts(ctx, chains)
	if missing = append(missing, ports...); err == nil && len(missing) > 0 {
		diff = append(diff, "have Docker rebuild its firewall chains, which lack "+strings.Join(missing, ", "))
	}
	return diff, err
}

func missingChains(chains *netfilter.Chains) (missing []string, err error) {
	missing, err = chains.Missing(dockerJumps...)
	if err != nil {
		return nil, err
	}
	forwards, err := forwards(chains)
	if err == nil && !forwards {
		missing = append(missing, "the rules for "+linkName)
	}
	return missing, err
}

// forwards reports whether FORWARD jumps to a chain of Docker that has rules.
// The chain of containers has none if no port is published.
func forwards(chains *netfilter.Chains) (bool, error) {
	for _, to := range forwardJumps {
		missing, err := chains.Missing(netfilter.Jump{Table: userChain.Table, From: "FORWARD", To: to})
		if err != nil {
			return false, err
		}
		if len(missing) > 0 {
			continue
		}
		rules, err := chains.Rules(userChain.Table, to)
		return to == "DOCKER" || len(rules) > 0, err
	}
	return false, nil
}

// missingPorts lists the published ports of docker0's containers for which
// there is no rule.
func (d Daemon) missingPorts(ctx context.Context, chains *netfilter.Chains) (missing []string, err error) {
	docker := d.Engine()
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
