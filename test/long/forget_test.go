//go:build e2e

package long

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// refusedTurndown stops one of two: the other must not leave, as nobody could
// take it out of etcd.
func refusedTurndown(t *testing.T, first, second hosts.Machine) {
	hosts.Power(t, "stop", first)
	out := second.Sh(t, "{ kube-bootstrap turndown --yes; } 2>&1; echo exit $?")
	if !strings.HasSuffix(out, "exit 3") || !strings.Contains(out, "[etcd-") || !strings.Contains(out, "--force") {
		t.Errorf("want a refusal, got:\n%s", out)
	}
	namesWhoIsDown(t, first, second)
	hosts.Power(t, "start", first)
	clusters.Voters(t, second, 2)
}

// namesWhoIsDown checks status without an etcd quorum: the content of etcd is
// unknown, so nothing in it counts as missing, and status must not suggest a
// run on this host.
func namesWhoIsDown(t *testing.T, off, on hosts.Machine) {
	out := on.Sh(t, "kube-bootstrap status || [ $? = 5 ]")
	for _, want := range []string{
		"UNKNOWN", "1 of 2 members answer and 2 are required; down: " + off.Name, "start or repair their hosts",
		"[etcd-quorum]",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("status does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "add etcd user") || strings.Contains(out, "to repair this host") {
		t.Errorf("status takes no answer for something to repair:\n%s", out)
	}
	out = on.Sh(t, "{ kube-bootstrap forget "+off.Name+"; } 2>&1; echo exit $?")
	if !strings.HasSuffix(out, "exit 3") || !strings.Contains(out, "down: "+off.Name) {
		t.Errorf("forget does not say who is down:\n%s", out)
	}
}

func refusedForget(t *testing.T, first, second hosts.Machine) {
	for name, problem := range map[string]string{
		second.Name: "[control-plane-alive]", first.Name: "[control-plane-alive]", "nobody": "[node-unknown]",
	} {
		out := first.Sh(t, "{ kube-bootstrap forget "+name+"; } 2>&1; echo exit $?")
		if !strings.HasSuffix(out, "exit 3") || !strings.Contains(out, problem) {
			t.Errorf("forget %s: want %s, got:\n%s", name, problem, out)
		}
	}
}

// forget removes a stopped control plane from the cluster. When it starts again, the
// cluster does not know it any more, and turndown works all the same.
func forget(t *testing.T, first, third hosts.Machine) {
	third.Sh(t, clusters.NewToken(t, first, "--control-plane").ControlPlaneLine())
	clusters.Voters(t, first, 3)
	hosts.Power(t, "stop", third)
	hosts.Soon(t, time.Minute, "forget "+third.Name, first, "kube-bootstrap forget "+third.Name)
	clusters.Voters(t, first, 2)
	hosts.Power(t, "start", third)
	third.Sh(t, "until systemctl is-system-running --wait 2>/dev/null | grep -Eq 'running|degraded'; "+
		"do sleep 0.1; done")
	hosts.Soon(t, 3*time.Minute, "the agent of "+third.Name, third,
		"journalctl -q -b -u kube-bootstrap-agent | grep etcd-removed")
	clusters.Voters(t, first, 2)
	third.Sh(t, "kube-bootstrap turndown --yes")
	clusters.Voters(t, first, 2)
	// Its kubelet would have registered it again.
	if nodes := first.Kubectl(t, "get nodes -o name"); strings.Contains(nodes, third.Name) {
		t.Errorf("it is a node again:\n%s", nodes)
	}
}
