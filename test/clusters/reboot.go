package clusters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// Reboots restarts ready machines in every order that matters, and expects all
// to come back without a command.
func Reboots(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	before := Subnets(t, master, worker)
	Spread(t, master)
	for _, r := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"master", func(t *testing.T) { hosts.Restart(t, master) }},
		{"both at once", func(t *testing.T) { hosts.Restart(t, master, worker) }},
		{"worker while the master is away", func(t *testing.T) {
			hosts.Power(t, "stop", master)
			hosts.Restart(t, worker)
			alone(t, worker, before)
			hosts.Power(t, "start", master)
		}},
		{"worker, its lease gone from etcd", func(t *testing.T) {
			hosts.Power(t, "stop", worker)
			ForgetLease(t, master, worker, before)
			hosts.Power(t, "start", worker)
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			ComesBack(t, master, worker, before, r.do)
		})
	}
}

// ComesBack reboots ready machines, and expects all pods to come back without a command.
func ComesBack(t *testing.T, master, worker hosts.Machine, before map[string]string, do func(t *testing.T)) {
	t.Helper()
	var pods string
	wait.Until(t, time.Minute, "the mirror pods", func() (err error) {
		pods, err = podNames(t, master)
		if err == nil && strings.Count(pods, "-"+master.Name) < 3 {
			err = fmt.Errorf("found:\n%s", pods)
		}
		return err
	})
	started := time.Now()
	do(t)
	recovered(t, master, worker, pods, before)
	t.Logf("all back after %s", time.Since(started).Round(time.Second))
}

// SubnetFile is the file of flanneld with the subnet of a host.
const SubnetFile = "/var/lib/kube-bootstrap/flannel/subnet.env"

// Subnets is each machine's flannel subnet, by its name.
func Subnets(t *testing.T, all ...hosts.Machine) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range all {
		found[m.Name] = m.Sh(t, "sed -n s/^FLANNEL_SUBNET=//p "+SubnetFile)
	}
	return found
}

// alone expects a worker without its master to have its network as before.
func alone(t *testing.T, worker hosts.Machine, before map[string]string) {
	t.Helper()
	wait.Until(t, time.Minute, "docker0 of "+worker.Name+" without the master", func() error {
		return HasBridge(t, worker, before[worker.Name])
	})
}

// HasBridge returns an error unless docker0 of a host is on its subnet.
func HasBridge(t *testing.T, m hosts.Machine, subnet string) error {
	t.Helper()
	out, err := m.Try(t.Context(), "docker version -f ok >/dev/null && ip -4 -o addr show docker0 && "+
		"sed -n s/^FLANNEL_SUBNET=//p "+SubnetFile)
	if err == nil && strings.Count(out, subnet) != 2 {
		err = fmt.Errorf("docker0 is not on %s: %s", subnet, out)
	}
	return err
}

// ForgetLease deletes the worker's lease out of etcd, as when it has ended
// while the machine was off.
func ForgetLease(t *testing.T, master, worker hosts.Machine, before map[string]string) {
	t.Helper()
	address, _, _ := strings.Cut(before[worker.Name], "/")
	key := "/coreos.com/network/subnets/" + strings.TrimSuffix(address, ".1") + ".0-24"
	etcd := EtcdClient(t, master, "apiserver-etcd-client")
	deleted, err := etcd.Delete(t.Context(), key)
	if err != nil || deleted.Deleted != 1 {
		t.Fatalf("delete %s: %v, %v", key, deleted, err)
	}
}

func podNames(t *testing.T, master hosts.Machine) (string, error) {
	t.Helper()
	return master.Try(t.Context(),
		`kubectl get pods -A --sort-by=.metadata.uid -o 'jsonpath={range .items[*]}{.metadata.uid} {.metadata.name}`+
			`{"\n"}{end}'`)
}

// recovered expects the nodes and pods of before to be Ready with new
// heartbeats, and Docker on the same subnets.
func recovered(t *testing.T, master, worker hosts.Machine, pods string, before map[string]string) {
	t.Helper()
	since := time.Now().UTC()
	for _, m := range []hosts.Machine{master, worker} {
		wait.Until(t, time.Minute, "docker0 of "+m.Name, func() error { return HasBridge(t, m, before[m.Name]) })
		hosts.Reloaded(t, m)
	}
	wait.Until(t, 2*time.Minute, "nodes and pods after a reboot", func() error {
		return AllReady(t, master, since, 2)
	})
	if now, err := podNames(t, master); err != nil || now != pods {
		t.Errorf("other pods after the reboot: %v\n%s\nbefore:\n%s", err, now, pods)
	}
}
