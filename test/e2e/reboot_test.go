//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// reboots restarts ready machines in every order that matters, and expects all
// to come back without a command.
func reboots(t *testing.T, master, worker machine) {
	t.Helper()
	before := subnets(t, master, worker)
	spread(t, master)
	for _, r := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"master", func(t *testing.T) { restart(t, master) }},
		{"both at once", func(t *testing.T) { restart(t, master, worker) }},
		{"worker while the master is away", func(t *testing.T) {
			power(t, "stop", master)
			restart(t, worker)
			alone(t, worker, before)
			power(t, "start", master)
		}},
		{"worker, its lease gone from etcd", func(t *testing.T) {
			power(t, "stop", worker)
			forgetLease(t, master, worker, before)
			power(t, "start", worker)
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			comesBack(t, master, worker, before, r.do)
		})
	}
}

// comesBack reboots ready machines, and expects all pods to come back without a command.
func comesBack(t *testing.T, master, worker machine, before map[string]string, do func(t *testing.T)) {
	t.Helper()
	var pods string
	eventually(t, time.Minute, "the mirror pods", func() (err error) {
		pods, err = podNames(t, master)
		if err == nil && strings.Count(pods, "-"+master.name) < 3 {
			err = fmt.Errorf("found:\n%s", pods)
		}
		return err
	})
	started := time.Now()
	do(t)
	recovered(t, master, worker, pods, before)
	t.Logf("all back after %s", time.Since(started).Round(time.Second))
}

// spread waits until CoreDNS is Ready on two nodes: both of its pods were on the
// first one when the second joined.
func spread(t *testing.T, master machine) {
	t.Helper()
	const where = `{range .items[*]}{.spec.nodeName} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`
	eventually(t, time.Minute, "CoreDNS on two nodes", func() error {
		out, err := master.try(t.Context(), "kubectl -n kube-system get pods -l k8s-app=kube-dns -o 'jsonpath="+where+"'")
		if on := strings.Fields(out); err == nil && (len(on) != 4 || on[0] == on[2] || on[1] != "True" || on[3] != "True") {
			err = fmt.Errorf("it is on %v", on)
		}
		return err
	})
}

// restart is a reboot: the machine is a container with an init.
func restart(t *testing.T, all ...machine) {
	t.Helper()
	power(t, "stop", all...)
	power(t, "start", all...)
}

// power does one thing to all machines at the same time.
func power(t *testing.T, verb string, all ...machine) {
	t.Helper()
	args := []string{"docker", verb}
	if verb == "stop" {
		args = append(args, "-t", "20")
	}
	for _, m := range all {
		args = append(args, m.name)
	}
	if _, err := (host.Command{Args: args}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

const subnetFile = "/var/lib/kube-bootstrap/flannel/subnet.env"

// subnets is each machine's flannel subnet, by its name.
func subnets(t *testing.T, all ...machine) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range all {
		found[m.name] = m.sh(t, "sed -n s/^FLANNEL_SUBNET=//p "+subnetFile)
	}
	return found
}

// alone expects a worker without its master to have its network as before.
func alone(t *testing.T, worker machine, before map[string]string) {
	t.Helper()
	eventually(t, time.Minute, "docker0 of "+worker.name+" without the master", func() error {
		return hasBridge(t, worker, before[worker.name])
	})
}

func hasBridge(t *testing.T, m machine, subnet string) error {
	t.Helper()
	out, err := m.try(t.Context(), "docker version -f ok >/dev/null && ip -4 -o addr show docker0 && sed -n s/^FLANNEL_SUBNET=//p "+subnetFile)
	if err == nil && strings.Count(out, subnet) != 2 {
		err = fmt.Errorf("docker0 is not on %s: %s", subnet, out)
	}
	return err
}

// forgetLease deletes the worker's lease out of etcd, as when it has ended
// while the machine was off.
func forgetLease(t *testing.T, master, worker machine, before map[string]string) {
	t.Helper()
	address, _, _ := strings.Cut(before[worker.name], "/")
	key := "/coreos.com/network/subnets/" + strings.TrimSuffix(address, ".1") + ".0-24"
	etcd := etcdClient(t, master, "apiserver-etcd-client")
	deleted, err := etcd.Delete(t.Context(), key)
	if err != nil || deleted.Deleted != 1 {
		t.Fatalf("delete %s: %v, %v", key, deleted, err)
	}
}

func podNames(t *testing.T, master machine) (string, error) {
	t.Helper()
	return master.try(t.Context(), `kubectl get pods -A --sort-by=.metadata.uid -o 'jsonpath={range .items[*]}{.metadata.uid} {.metadata.name}{"\n"}{end}'`)
}

// recovered expects the nodes and pods of before to be Ready with new
// heartbeats, and Docker on the same subnets.
func recovered(t *testing.T, master, worker machine, pods string, before map[string]string) {
	t.Helper()
	since := time.Now().UTC()
	for _, m := range []machine{master, worker} {
		eventually(t, time.Minute, "docker0 of "+m.name, func() error { return hasBridge(t, m, before[m.name]) })
		reloaded(t, m)
	}
	eventually(t, 2*time.Minute, "nodes and pods after a reboot", func() error {
		return allReady(t, master, since, 2)
	})
	if now, err := podNames(t, master); err != nil || now != pods {
		t.Errorf("other pods after the reboot: %v\n%s\nbefore:\n%s", err, now, pods)
	}
}

// podsReady waits until all nodes and pods are Ready: a control plane waits for one pod of CoreDNS.
func podsReady(t *testing.T, master machine, nodes int) {
	t.Helper()
	eventually(t, 2*time.Minute, "all nodes and pods Ready", func() error { return allReady(t, master, time.Now().Add(-time.Hour), nodes) })
}

const conditions = `{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastTransitionTime}{"\n"}{end}`

func allReady(t *testing.T, master machine, since time.Time, nodes int) error {
	t.Helper()
	const get = "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf get "
	out, err := master.try(t.Context(), get+"nodes -o 'jsonpath="+conditions+"' && echo && "+get+"pods -A -o 'jsonpath="+conditions+"'")
	if err != nil {
		return err
	}
	ready := strings.Count(out, " True ")
	if lines := len(strings.Fields(out)) / 3; ready != lines || lines < nodes+5 || strings.Contains(out, " False ") || strings.Contains(out, " Unknown ") {
		return fmt.Errorf("not all is Ready:\n%s", out)
	}
	// A lease that was renewed after the reboot says that the kubelet is back.
	leases, err := master.try(t.Context(), get+`leases -n kube-node-lease -o 'jsonpath={range .items[*]}{.spec.renewTime}{"\n"}{end}'`)
	if err != nil {
		return err
	}
	for _, text := range strings.Fields(leases) {
		if at, err := time.Parse(time.RFC3339, text); err != nil || at.Before(since) {
			return fmt.Errorf("a kubelet was last heard of at %s", text)
		}
	}
	return nil
}
