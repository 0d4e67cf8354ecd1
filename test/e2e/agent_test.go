//go:build e2e

package e2e

import (
	"errors"
	"testing"
	"time"
)

// agentWorks shows on a control plane that the agent comes back after its end,
// starts a kubelet that was removed, and approves the serving certificate that
// this kubelet asks for.
func agentWorks(t *testing.T, m machine) {
	t.Helper()
	pid := m.sh(t, "cat /run/kube-bootstrap-agent.pid")
	m.sh(t, "kill -9 "+pid)
	eventually(t, time.Minute, "another agent", func() error {
		out, err := m.try(t.Context(), "cat /run/kube-bootstrap-agent.pid && kill -0 $(cat /run/kube-bootstrap-agent.pid)")
		if err == nil && out == pid {
			err = errors.New("it is still process " + pid)
		}
		return err
	})
	m.sh(t, "rm /var/lib/kubelet/pki/kubelet-server-current.pem && docker rm -f kubelet")
	soon(t, 2*time.Minute, "a kubelet with an approved certificate", m, "docker inspect -f '{{.State.Running}}' kubelet | grep true && test -s /var/lib/kubelet/pki/kubelet-server-current.pem")
	whole(t, m, time.Minute, "status after repairs by the agent")
	soon(t, time.Minute, "the record of the repair", m, "kube-bootstrap status -o json | grep 'run container kubelet'") // it follows the repair
}

// whole waits until status finds nothing missing, without a command.
func whole(t *testing.T, m machine, limit time.Duration, what string) {
	t.Helper()
	eventually(t, limit, what, func() error {
		out, err := m.try(t.Context(), "kube-bootstrap status 2>&1")
		if err != nil {
			return errors.Join(err, errors.New(missing(out)))
		}
		return nil
	})
}
