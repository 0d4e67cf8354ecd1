//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// badSettings runs hosts of a cluster with invalid settings: each is refused by
// name or fails, nothing restarts, and the settings in force stay.
func badSettings(t *testing.T, master, worker hosts.Machine) {
	const settings = "cat /var/lib/kube-bootstrap/config.yaml /var/lib/kube-bootstrap/versions.json"
	for _, c := range []struct {
		on    hosts.Machine
		Local string
		code  string
		names []string
	}{
		{master, "master --service-network 10.97.0.0/16 --dns-domain k8s.lan --flannel-backend host-gw --host-name " +
			"other --ip-address 192.0.2.9 --node-label a=b", "3",
			[]string{"dns-domain", "flannel-backend", "host-name", "ip-address", "service-network"}},
		{
			worker, "worker --flannel-network 10.7.0.0/16 --cni-plugin calico", "3", []string{
				"cni-plugin", "flannel-network",
			},
		},
		{worker, "worker --node-taint dedicated=db:NoSchedule", "3", []string{"node-taint"}},
		{
			master, "master --apiserver-arg evnt-ttl=2h --scheduler-arg kubeconfig=/x --feature-gates NoSuchGate=true",
			"2", nil,
		},
		{master, "master --node-label late=yes --addons /root/bad.yaml", "1", nil},
	} {
		c.on.Sh(t, "printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {}\n' >/root/bad.yaml")
		before, was := c.on.Sh(t, settings), c.on.Steady(t)
		code, says := c.on.Ask(t, "", c.Local, hosts.Bundle)
		names := hosts.ProblemNames(says)
		slices.Sort(names)
		if code != c.code || !slices.Equal(names, c.names) {
			t.Errorf("%s: exit code %s, problems %q, want %s, %q:\n%s", c.Local, code, names, c.code, c.names, says)
		}
		if after := c.on.Sh(t, settings); after != before {
			t.Errorf("%s: the settings in force are\n%s\nand were\n%s", c.Local, after, before)
		}
		if is := c.on.Running(t); c.code != "1" && is != was {
			t.Errorf("%s: it restarted something:\n%s\nthen\n%s", c.Local, was, is)
		}
		c.on.Sh(t, "rm /root/bad.yaml")
	}
	master.Sh(t, "kube-bootstrap master && kube-bootstrap status")
	if label := master.Kubectl(t, "get node "+master.Name+" -o 'jsonpath={.metadata.labels.late}'"); label != "" {
		t.Errorf("the label of a run that failed is still there: %s", label)
	}
	markOwn(t, master, worker)
	serveName(t, master)
}

// serveName adds a name to the API server's certificate without a restart, and
// removes it. A user's kubeconfig is refused for a name that it lacks.
func serveName(t *testing.T, master hosts.Machine) {
	const name = "k8s.example.com"
	const user = "kube-bootstrap kubeconfig --user anna --group dev --ttl 10m --server https://"
	started := func() string {
		return master.Kubectl(t, "-n kube-system get pod kube-apiserver-"+master.Name+
			" -o 'jsonpath={.status.containerStatuses[0].state.running.startedAt}'")
	}
	before := started()
	if out, err := master.Try(t.Context(), user+name+" 2>&1"); err == nil || !strings.Contains(out, "[server]") {
		t.Errorf("a kubeconfig for a name that the certificate lacks: %v\n%s", err, out)
	}
	master.Sh(t, "kube-bootstrap master --tls-san "+name+" && "+user+name)
	out := master.Sh(t, user+master.IP+":6443 --file anna.conf && KUBECONFIG=anna.conf kubectl auth whoami; "+
		"rm anna.conf")
	if !strings.Contains(out, "anna") || !strings.Contains(out, "[dev system:authenticated]") {
		t.Errorf("the user of the kubeconfig is\n%s", out)
	}
	master.Sh(t, "kube-bootstrap master --tls-san= && ! "+user+name+" && kube-bootstrap status")
	if after := started(); after != before {
		t.Errorf("the API server started at %s, and again at %s", before, after)
	}
}

// markOwn changes the labels and taints that a host can change on its own node.
func markOwn(t *testing.T, master, worker hosts.Machine) {
	for _, c := range []struct {
		on          hosts.Machine
		Local, want string
	}{
		{worker, "worker --node-label disk=ssd", "ssd"},
		{worker, "worker --node-label=", ""},
		{master, "master --no-dedicated --node-taint mine=x:PreferNoSchedule", "mine"},
		{master, "master --no-dedicated=false --node-taint=", "node-role.kubernetes.io/control-plane"},
	} {
		c.on.Sh(t, "kube-bootstrap "+c.Local)
		if got := master.Kubectl(t, "get node "+c.on.Name+
			" -o 'jsonpath={.metadata.labels.disk}{.spec.taints[*].key}'"); got != c.want {
			t.Errorf("%s: labels and taints are %q, want %q", c.Local, got, c.want)
		}
	}
	markOther(t, master, worker)
}

// markOther has a control plane change the marks of a worker. The worker's
// kubelet says that they include a taint of an administrator, which must stay.
func markOther(t *testing.T, master, worker hosts.Machine) {
	master.Kubectl(t, "taint node "+worker.Name+" quarantine=1:PreferNoSchedule")
	worker.Sh(t, `docker exec kubelet kubectl --kubeconfig /etc/kubernetes/kubelet.conf annotate --overwrite node `+
		worker.Name+
		` 'kube-bootstrap.dev/marks={"taints":["quarantine=1:PreferNoSchedule"]}'`)
	for _, c := range []struct{ marks, want string }{
		{" --node-taint own=1:PreferNoSchedule", "own quarantine"}, {"", "quarantine"},
	} {
		master.Sh(t, "kube-bootstrap mark "+worker.Name+c.marks)
		keys := strings.Fields(master.Kubectl(t, "get node "+worker.Name+" -o 'jsonpath={.spec.taints[*].key}'"))
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("mark%s: taints are %q, want %q", c.marks, got, c.want)
		}
	}
	master.Kubectl(t, "taint node "+worker.Name+" quarantine-")
	worker.Sh(t, "kube-bootstrap worker --bundle "+hosts.Bundle) // writes its own annotation again
}
