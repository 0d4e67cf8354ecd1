//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/faults"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// repairs breaks each layer of a ready cluster by hand. What runs, the agent
// repairs. While the agent repairs nothing, status must name the fault and
// fail, and the verb of the host must repair it.
func repairs(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	t.Run("the agent", func(t *testing.T) { clusters.AgentWorks(t, master) })
	t.Run("quick faults", func(t *testing.T) { faults.Quick(t, master, worker) })
	for _, c := range []struct{ name, do, step string }{
		{"flanneld stopped", "docker -H unix:///run/docker-bootstrap.sock stop -t 1 flannel", "start flanneld"},
		{"docker0 without address", "ip addr flush dev docker0", "let the overlay into docker0"},
		{"firewall rule of another backend", otherBackend, "let the overlay into docker0"},
		{"firewall rule deleted", "iptables -F DOCKER-USER", "let the overlay into docker0"},
		{"kubelet stopped", "docker stop -t 1 kubelet", "start the kubelet"},
		{"CNI config deleted", "rm /etc/cni/net.d/*kube-bootstrap*", "write the CNI config"},
	} {
		for _, m := range []hosts.Machine{master, worker} {
			t.Run(c.name+" on "+m.Name, func(t *testing.T) { repair(t, m, verb(m == master), c.do, c.step) })
		}
	}
	for _, c := range []struct{ name, do, step string }{
		{"etcd stopped", "docker -H unix:///run/docker-bootstrap.sock stop -t 1 etcd", "start etcd"},
		{"certificate expired", expire, "issue certificates"},
		{
			"static pod deleted", "rm /etc/kubernetes/manifests/kube-scheduler.yaml",
			"write the static pods of the scheduler and the controller manager",
		},
	} {
		t.Run(c.name, func(t *testing.T) { repair(t, master, "master", c.do, c.step) })
	}
	t.Run("a slow etcd", func(t *testing.T) { slowEtcd(t, master) })
	t.Run("a kubelet that ends", func(t *testing.T) { endingKubelet(t, master) })
	before := newest(t, master)
	master.Sh(t, "kube-bootstrap master 2>&1")
	if after := newest(t, master); after != before {
		t.Errorf("a run on a whole host restarted something:\n%s\nbefore:\n%s", after, before)
	}
}

// slowEtcd delays the answers of etcd by seconds. status must report the
// content of etcd as unknown, and a run must wait for the answer and change
// nothing.
func slowEtcd(t *testing.T, master hosts.Machine) {
	master.Sh(t, "pkill -STOP -x etcd")
	out := master.Sh(t, "kube-bootstrap status || [ $? = 5 ]")
	if strings.Contains(out, "MISSING  give etcd its users") || strings.Contains(out, "add etcd user") ||
		!strings.Contains(out, "UNKNOWN") {
		t.Errorf("status takes no answer for a difference:\n%s", out)
	}
	master.Sh(t, "(sleep 15; pkill -CONT -x etcd) >/dev/null 2>&1 & kube-bootstrap master 2>&1")
}

// endingKubelet gives the kubelet a setting with which it exits.
func endingKubelet(t *testing.T, master hosts.Machine) {
	out := master.Sh(t, "{ timeout 600 kube-bootstrap master --kubelet-config '{maxPods: -1}'; } 2>&1; echo exit $?")
	if !strings.HasSuffix(out, "exit 1") || !strings.Contains(out, "container kubelet ended") ||
		!strings.Contains(out, "maxPods") {
		t.Errorf("want the last line of the kubelet's log, got:\n%s", out)
	}
	master.Sh(t, "kube-bootstrap master 2>&1")
}

func verb(isMaster bool) string {
	if isMaster {
		return "master"
	}
	return "worker"
}

// otherBackend is a firewall rule as kube-bootstrap creates it for host-gw.
const otherBackend = `iptables -I DOCKER-USER -s 10.193.0.0/16 -d 10.1.0.0/16 -o docker0 -m comment --comment ` +
	`"kube-bootstrap: hosts to docker0" -j ACCEPT`

// expire replaces the API server's client certificate for kubelets by one of
// the same authority and key that has ended.
const expire = `cd /etc/kubernetes/pki && openssl req -new -key apiserver-kubelet-client.key \
	-subj /O=kubeadm:cluster-admins/CN=kube-apiserver-kubelet-client -out /tmp/x.csr &&
openssl x509 -req -in /tmp/x.csr -CA ca.crt -CAkey ca.key -not_before 20200101000000Z -not_after 20200102000000Z \
	-out apiserver-kubelet-client.crt; rm -f /tmp/x.csr`

// suspend keeps the agent from repairing until the next run, and waits for the end of a repair that
// has begun: the agent holds the lock meanwhile.
const suspend = "rm -f /var/lib/kube-bootstrap/complete && flock /run/kube-bootstrap.lock true; "

func repair(t *testing.T, m hosts.Machine, verb, harm, step string) {
	t.Helper()
	m.Sh(t, suspend+harm)
	names := clusters.Broken(t, m)
	if !strings.Contains(names, step) {
		t.Errorf("status does not name %q, but: %q", step, names)
	}
	if out, err := m.Try(t.Context(), "kube-bootstrap status"); err == nil ||
		!strings.Contains(out, "kube-bootstrap "+verb) {
		t.Errorf("status exits with %v and says:\n%s", err, out)
	}
	m.Sh(t, "kube-bootstrap "+verb+" 2>&1")
	if left := clusters.Broken(t, m); left != "" {
		t.Errorf("not repaired: %s", left)
	}
}

// newest prints when each process and container of kube-bootstrap was started.
func newest(t *testing.T, m hosts.Machine) string {
	t.Helper()
	return m.Sh(t,
		`docker inspect -f '{{.Name}} {{.State.StartedAt}}' $(docker ps -q); `+
			`docker -H unix:///run/docker-bootstrap.sock inspect -f '{{.Name}} {{.State.StartedAt}}' etcd flannel; `+
			`systemctl show -p ExecMainStartTimestamp docker containerd docker-bootstrap`)
}
