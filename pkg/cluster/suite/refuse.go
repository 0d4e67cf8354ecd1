package suite

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Some tests expect that nobody answers on a Service port that was removed.
// kube-proxy has no rule for such a port, so the node sends the packets to its
// default gateway, and a transparent proxy behind it may accept the connection.
// During a run the nodes reject packets that still have the address of a Service
// after kube-proxy's rules.

const rejectMark = "kube-bootstrap-e2e"

// networkScript prints the network of the Services.
const networkScript = `docker exec kubelet kubectl --kubeconfig ` + apiserver.AdminKubeconfig + ` get servicecidrs kubernetes -o 'jsonpath={.spec.cidrs[0]}'`

// rejectScript adds the rules for the network $1.
const rejectScript = `for chain in FORWARD OUTPUT; do
	rule="$chain -d $1 -m comment --comment ` + rejectMark + ` -j REJECT"
	iptables -w -C $rule 2>/dev/null || iptables -w -I $rule || exit
done`

// acceptScript deletes the rules, whatever their network is.
const acceptScript = `iptables -w -S | sed -n '/--comment ` + rejectMark + ` /s/^-A/iptables -w -D/p' | sh -e`

// rejectedScript lists the rules that acceptScript deletes.
const rejectedScript = "iptables -w -S | grep -e '--comment " + rejectMark + " ' || true"

// reject returns the step that rejects packets to unknown Services on a node.
func (s *run) reject(name string) step.Step {
	return step.Always("reject packets to unknown Services on "+name, func(ctx context.Context) error {
		network, err := s.onMaster().Output(ctx, driver.Script(networkScript)...)
		if err != nil {
			return err
		}
		return s.session.Node(name).Run(ctx, driver.Script(rejectScript, network)...)
	})
}

// accept returns the step that undoes reject.
func (s *run) accept(name string) step.Step {
	return undo("accept packets to unknown Services on "+name, s.session.Node(name), rejectedScript, acceptScript)
}
