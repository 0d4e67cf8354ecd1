//go:build e2e

package long

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestTinyHosts: with the default settings, a host with a tenth of a CPU becomes a
// control plane, and a host with 1 GiB of memory a worker, as slowly as it takes.
func TestTinyHosts(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.133.1.0/24", "e2e-tenth", "e2e-gib")
	for _, m := range made {
		hosts.LoadProbe(t, m)
	}
	hosts.Docker(t, "update", "--cpus", "0.1", made[0].Name)
	hosts.Docker(t, "update", "--memory", "1g", "--memory-swap", "1g", made[1].Name)
	clusters.Up(t, made[0], made[1], "")
	hosts.Docker(t, "update", "--cpus", "0.1", made[1].Name)
	wait.Until(t, 10*time.Minute, "both nodes", func() error {
		return clusters.AllReady(t, made[0], time.Now().Add(-time.Minute), 2)
	})
	for _, m := range made {
		t.Logf("%s: %s", m.Name, m.Sh(t, "cat /proc/pressure/cpu /proc/loadavg; free -m | head -2"))
	}
}

// TestSlowStart: master and worker succeed while etcd and flanneld are stopped for longer than
// a check may take.
func TestSlowStart(t *testing.T) {
	made := hosts.New(t, "docker-26.1", "10.133.3.0/24", "e2e-sa", "e2e-sb")
	for _, m := range made {
		hosts.LoadProbe(t, m)
	}
	upSlowly(t, made[0], made[1])
	clusters.Down(t, made[1], made[0])
}

// upSlowly is up on hosts whose etcd and flanneld take their time: longer than a check may take.
func upSlowly(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	onMaster, onWorker := []string{"etcd:15", "flanneld:25"}, []string{"flanneld:25"}
	freezeAtStart(t, master, onMaster...)
	freezeAtStart(t, worker, onWorker...)
	clusters.Up(t, master, worker, "")
	wereFrozen(t, master, onMaster...)
	wereFrozen(t, worker, onWorker...)
}

// TestFrozenCluster: cluster up and node add succeed while etcd and flanneld of each new host
// are stopped for longer than a check may take.
func TestFrozenCluster(t *testing.T) {
	l := clusterUser{localcluster.User{Cluster: "e2e-frozen", Subnet: "10.133.2.0/24", Dir: t.TempDir()}}
	t.Cleanup(func() { _, _ = l.Try(context.Background(), "kube-bootstrap cluster clean --yes") })
	frozen := l.freezing(t, "master-1", "etcd:15", "flanneld:25")
	joined := l.freezing(t, "worker-1", "flanneld:25")
	l.Sh(t, "kube-bootstrap cluster up --workers 1 --progress none")
	frozen()
	joined()
	added := l.freezing(t, "more", "flanneld:25")
	l.Sh(t, "kube-bootstrap node add --name more --progress none")
	added()
	l.Sh(t, "kube-bootstrap node status")
}

// freezing calls freezeAtStart as soon as a host of the cluster exists. The returned function
// expects that it has stopped the programs.
func (l clusterUser) freezing(t *testing.T, name string, programs ...string) (check func()) {
	m := hosts.Machine{Name: l.Cluster + "-" + name}
	began := make(chan error, 1)
	go func() {
		script := fmt.Sprintf(freezeScript, strings.Join(programs, " "))
		for {
			_, err := m.Try(t.Context(), "command -v pgrep && "+script)
			if err == nil || t.Context().Err() != nil {
				began <- err
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return func() {
		t.Helper()
		if err := <-began; err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		wereFrozen(t, m, programs...)
	}
}
