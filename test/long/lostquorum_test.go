//go:build e2e

package long

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// lost is a cluster of three control planes, of which two die. The surviving control plane had joined the first one.
type lost struct {
	first, left, third hosts.Machine
	last               int // the last write that was acknowledged
}

const (
	recoverCommand = "kube-bootstrap master --recover"
	asAdmin        = "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf "
)

// TestLostQuorum kills two of three control planes, recovers the third one, starts the two again, and joins them.
func TestLostQuorum(t *testing.T) {
	all := hosts.New(t, "docker-28.5", "10.193.63.0/24", "e2e-lost-a", "e2e-lost-b", "e2e-lost-c")
	c := &lost{first: all[0], left: all[1], third: all[2]}
	c.first.Sh(t, "kube-bootstrap master --no-dedicated --bundle "+hosts.Bundle)
	line := clusters.NewToken(t, c.first, "--control-plane", "--reusable").ControlPlaneLine()
	c.left.Sh(t, line)
	c.third.Sh(t, line)
	clusters.Voters(t, c.first, 3)
	c.refuses(t, "[etcd-has-quorum]")
	t.Run("the survivor recovers", c.recovers)
	t.Run("the dead ones start again", c.comeBack)
	t.Run("three again", c.joins)
}

func (c *lost) refuses(t *testing.T, problem string) {
	t.Helper()
	out, err := c.left.Try(t.Context(), recoverCommand+" 2>&1")
	if err == nil || !strings.Contains(out+err.Error(), problem) {
		t.Errorf("%s: %v\n%s", recoverCommand, err, out)
	}
}

// write creates objects until the power of the others is cut.
func (c *lost) write(t *testing.T) {
	c.left.Sh(t, "(for i in $(seq 1000); do [ ! -e /root/stop ] || break; "+asAdmin+
		"create configmap write-$i && echo $i >/root/written || sleep 1; done >/dev/null 2>&1 &)")
	hosts.Soon(t, time.Minute, "writes", c.left, "[ $(cat /root/written) -gt 10 ]")
	hosts.Power(t, "kill", c.first, c.third)
	time.Sleep(5 * time.Second)
	c.left.Sh(t, "touch /root/stop")
	if _, err := fmt.Sscan(c.left.Sh(t, "cat /root/written"), &c.last); err != nil {
		t.Fatal(err)
	}
}

func (c *lost) recovers(t *testing.T) {
	c.write(t)
	hosts.Soon(t, time.Minute, "status to name the command", c.left,
		"kube-bootstrap status | grep -F '[etcd-quorum]' | grep -F '"+recoverCommand+"'")
	c.refuses(t, "[confirmation]")
	c.left.Sh(t, recoverCommand+" --dry-run | grep -F 'recover the data of etcd'")
	if out := clusters.KillIn(t, c.left, recoverCommand+" --yes", "use the recovered data of etcd"); !strings.
		HasPrefix(out, "137 ") {
		t.Errorf("killed: %s", out)
	}
	began := time.Now()
	c.left.Sh(t, "("+recoverCommand+" --yes >/root/recover.log 2>&1; echo $? >/root/recovered) &")
	hosts.Soon(t, 2*time.Minute, "the last write", c.left,
		fmt.Sprintf("%s--request-timeout 2s get configmap write-%d", asAdmin, c.last))
	t.Logf("the last write of %d is read after %s", c.last, time.Since(began).Round(time.Second/10))
	hosts.Says(t, 3*time.Minute, "the end of the recovery", c.left, "cat /root/recovered", "0")
	t.Logf("recovered after %s", time.Since(began).Round(time.Second/10))
	clusters.Voters(t, c.left, 1)
	hosts.Soon(t, 2*time.Minute, "the controller manager to work alone", c.left, "kube-bootstrap status")
}

// comeBack expects that the two, which have a quorum without the third one, form no cluster.
func (c *lost) comeBack(t *testing.T) {
	hosts.Power(t, "start", c.first, c.third)
	began := time.Now()
	for _, m := range []hosts.Machine{c.first, c.third} {
		wait.Until(t, 2*time.Minute, "status of "+m.Name, func() error {
			out, err := m.Try(t.Context(), "kube-bootstrap status || [ $? = 5 ]")
			if err == nil && !strings.Contains(out, "[etcd-removed]") {
				err = fmt.Errorf("status does not name the problem:\n%s", out)
			}
			return err
		})
		t.Logf("%s knows after %s", m.Name, time.Since(began).Round(time.Second/10))
		hosts.Soon(t, time.Minute, "the end of etcd on "+m.Name, m, "! pgrep -x etcd")
	}
	clusters.Voters(t, c.left, 1)
	c.left.Kubectl(t, fmt.Sprintf("get configmap write-%d", c.last))
}

func (c *lost) joins(t *testing.T) {
	line := clusters.NewToken(t, c.left, "--control-plane", "--reusable").ControlPlaneLine()
	for _, m := range []hosts.Machine{c.first, c.third} {
		m.Sh(t, "kube-bootstrap turndown --force --yes")
		m.Sh(t, line+" --bundle "+hosts.Bundle)
	}
	clusters.Voters(t, c.left, 3)
	for _, m := range []hosts.Machine{c.first, c.left, c.third} {
		hosts.Soon(t, 2*time.Minute, "status of "+m.Name, m, "kube-bootstrap status")
	}
	c.first.Kubectl(t, fmt.Sprintf("get configmap write-%d", c.last))
}
