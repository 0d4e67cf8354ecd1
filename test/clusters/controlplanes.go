package clusters

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// ControlPlanes is a cluster of three control planes and a worker on bare hosts.
type ControlPlanes struct{ First, Second, Third, Worker hosts.Machine }

// NewControlPlanes makes the bare hosts.
func NewControlPlanes(t *testing.T) ControlPlanes {
	t.Helper()
	made := hosts.New(t, "docker-28.5", "10.193.8.0/24", "e2e-m1", "e2e-m2", "e2e-m3", "e2e-m4")
	return ControlPlanes{made[0], made[1], made[2], made[3]}
}

// Join makes the cluster of the bare hosts.
func (c ControlPlanes) Join(t *testing.T) {
	// an addon that depends on the number of control planes
	c.First.Sh(t, "kube-bootstrap master --addons metrics-server --bundle "+hosts.Bundle)
	t.Run("join", func(t *testing.T) { joinControlPlanes(t, c.First, c.Second, c.Third) })
	t.Run("a worker joins through any", func(t *testing.T) { c.Worker.Sh(t, JoinCommand(t, c.Second)) })
	Ready(t, c.First, 4)
}

// joinControlPlanes has two hosts join side by side; one of them is killed in
// the steps that others would notice, and runs again.
func joinControlPlanes(t *testing.T, first, second, third hosts.Machine) {
	line := NewToken(t, first, "--control-plane", "--reusable").ControlPlaneLine()
	var all sync.WaitGroup
	var err error
	all.Go(func() { _, err = second.Try(t.Context(), line) })
	for _, step := range []string{
		"announce this control plane", "join etcd", "write the static pods of the scheduler and the controller manager",
	} {
		if out := KillIn(t, third, line, step); out != "137 "+step {
			t.Errorf("killed in %q: %s", step, out)
		}
	}
	third.Sh(t, line)
	if all.Wait(); err != nil {
		t.Fatal(err)
	}
	Voters(t, first, 3)
	const otherEtcd = "grep -q -e --etcd-servers=.*,https://127.0.0.1:6441 " +
		"/etc/kubernetes/manifests/kube-apiserver.yaml"
	hosts.Soon(t, time.Minute, "the first API server to use another etcd if its own is down", first, otherEtcd)
	for _, m := range []hosts.Machine{first, second, third} {
		hosts.Soon(t, time.Minute, "status of "+m.Name, m, "kube-bootstrap status")
		if leads := m.Sh(t, "cat /etc/kubernetes/manifests/kube-*.yaml | grep -c leader-elect=true || "+
			"true"); leads != "2" {
			t.Errorf("%s: %s of controller manager and scheduler share their work", m.Name, leads)
		}
	}
}

// Survive kills one control plane without a word. The others, and the worker,
// go on by their balancers; what is written meanwhile reaches it later.
func Survive(t *testing.T, dead hosts.Machine, left ...hosts.Machine) {
	other := left[0]
	hosts.Power(t, "kill", dead)
	for _, m := range left {
		wait.Until(t, time.Minute, "the API from "+m.Name, func() error { return AsksAPI(t, m) })
	}
	// etcd may have written what the API server did not confirm in time.
	const admin = "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf "
	hosts.Soon(t, time.Minute, "a change", other, admin+"create configmap written-meanwhile --from-literal=a=b || "+
		admin+"get configmap written-meanwhile")
	for range 10 {
		for _, m := range left {
			if err := AsksAPI(t, m); err != nil {
				t.Errorf("%s has lost the API again: %v", m.Name, err)
			}
		}
	}
	hosts.Power(t, "start", dead)
	wait.Until(t, 2*time.Minute, "its own API server", func() error {
		out, err := dead.Try(t.Context(), "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf get "+
			"configmap written-meanwhile -o 'jsonpath={.data.a}'")
		if err == nil && out != "b" {
			err = fmt.Errorf("got %q", out)
		}
		return err
	})
	Voters(t, dead, 3)
}

// AsksAPI reads the machine's own Node as its kubelet does.
func AsksAPI(t *testing.T, m hosts.Machine) error {
	_, err := m.Try(t.Context(), "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/kubelet.conf "+
		"--request-timeout 30s get node "+m.Name)
	return err
}
