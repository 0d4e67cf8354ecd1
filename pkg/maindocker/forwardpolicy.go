package maindocker

import (
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
)

const drop = "DROP"

// policyRecord saves the policy of the chain FORWARD before the first move. Docker sets it to
// DROP only if it enables forwarding itself. At boot the agent may do that first, and when
// Docker is restarted because the firewall was flushed, forwarding is on already.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/libnetwork/drivers/bridge/setup_ip_forwarding.go#L53-L58
var policyRecord = host.Record[string]{Path: host.StateDir + "/forward-policy", Valid: func(policy string) error {
	if policy != drop && policy != "ACCEPT" {
		return fmt.Errorf("%q is not a policy", policy)
	}
	return nil
}}

// notePolicy saves the policy once.
func notePolicy(files host.Files) error {
	return policyRecord.Ensure(files, func(error) (string, error) { return forwardPolicy() })
}

func forwardPolicy() (string, error) {
	chains, err := netfilter.ReadChains()
	if err != nil {
		return "", err
	}
	return chains.Policy(userChain.Table, "FORWARD")
}

// keepPolicy restores the policy DROP. A chain that dropped nothing before is left as it is.
func keepPolicy(files host.Files) error {
	before, err := policyRecord.Read(files)
	if host.Lost(err) || err == nil && before != drop {
		return nil
	}
	if err != nil {
		return err
	}
	now, err := forwardPolicy()
	if err != nil || now == drop {
		return err
	}
	return netfilter.SetPolicy(userChain.Table, "FORWARD", drop)
}
