package clusters

import (
	"errors"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// AgentWorks shows on a control plane that the agent comes back after its end,
// starts a kubelet that was removed, and approves the serving certificate that
// this kubelet asks for.
func AgentWorks(t *testing.T, m hosts.Machine) {
	t.Helper()
	pid := m.Sh(t, "cat /run/kube-bootstrap-agent.pid")
	m.Sh(t, "kill -9 "+pid)
	wait.Until(t, time.Minute, "another agent", func() error {
		out, err := m.Try(t.Context(), "cat /run/kube-bootstrap-agent.pid && "+
			"kill -0 $(cat /run/kube-bootstrap-agent.pid)")
		if err == nil && out == pid {
			err = errors.New("it is still process " + pid)
		}
		return err
	})
	m.Sh(t, "rm /var/lib/kubelet/pki/kubelet-server-current.pem && docker rm -f kubelet")
	hosts.Soon(t, 2*time.Minute, "a kubelet with an approved certificate", m,
		"docker inspect -f '{{.State.Running}}' kubelet | grep true && "+
			"test -s /var/lib/kubelet/pki/kubelet-server-current.pem")
	whole(t, m, time.Minute, "status after repairs by the agent")
	// It follows the repair. An agent that is quick sees a container that is being removed, and starts it.
	hosts.Soon(t, time.Minute, "the record of the repair", m,
		"kube-bootstrap status -o json | grep -E '(run|start) container kubelet' || { "+
			"cat /var/lib/kube-bootstrap/agent/repairs.json; tail -n 30 /var/log/kube-bootstrap-agent.log; exit 1; }")
}

// whole waits until status finds nothing missing, without a command.
func whole(t *testing.T, m hosts.Machine, limit time.Duration, what string) {
	t.Helper()
	wait.Until(t, limit, what, func() error {
		out, err := m.Try(t.Context(), "kube-bootstrap status 2>&1")
		if err != nil {
			return errors.Join(err, errors.New(Missing(out)))
		}
		return nil
	})
}
