//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"
)

// badSettings runs hosts of a cluster with invalid settings: each is refused by
// name or fails, nothing restarts, and the settings in force stay.
func badSettings(t *testing.T, master, worker machine) {
	const settings = "cat /var/lib/kube-bootstrap/config.yaml /var/lib/kube-bootstrap/versions.json"
	for _, c := range []struct {
		on    machine
		run   string
		code  string
		names []string
	}{
		{master, "master --service-network 10.97.0.0/16 --dns-domain k8s.lan --flannel-backend host-gw --host-name other --ip-address 192.0.2.9 --node-label a=b", "3",
			[]string{"dns-domain", "flannel-backend", "host-name", "ip-address", "service-network"}},
		{worker, "worker --flannel-network 10.7.0.0/16 --cni-plugin calico", "3", []string{"cni-plugin", "flannel-network"}},
		{worker, "worker --node-taint dedicated=db:NoSchedule", "3", []string{"node-taint"}},
		{master, "master --apiserver-arg evnt-ttl=2h --scheduler-arg kubeconfig=/x --feature-gates NoSuchGate=true", "2", nil},
		{master, "master --node-label late=yes --addons /root/bad.yaml", "1", nil},
	} {
		c.on.sh(t, "printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {}\n' >/root/bad.yaml")
		before, was := c.on.sh(t, settings), c.on.steady(t)
		code, says := c.on.ask(t, "", c.run, bundle)
		names := problemNames(says)
		slices.Sort(names)
		if code != c.code || !slices.Equal(names, c.names) {
			t.Errorf("%s: exit code %s, problems %q, want %s, %q:\n%s", c.run, code, names, c.code, c.names, says)
		}
		if after := c.on.sh(t, settings); after != before {
			t.Errorf("%s: the settings in force are\n%s\nand were\n%s", c.run, after, before)
		}
		if is := c.on.running(t); c.code != "1" && is != was {
			t.Errorf("%s: it restarted something:\n%s\nthen\n%s", c.run, was, is)
		}
		c.on.sh(t, "rm /root/bad.yaml")
	}
	master.sh(t, "kube-bootstrap master && kube-bootstrap status")
	if label := master.kubectl(t, "get node "+master.name+" -o 'jsonpath={.metadata.labels.late}'"); label != "" {
		t.Errorf("the label of a run that failed is still there: %s", label)
	}
	markOwn(t, master, worker)
	serveName(t, master)
}

// serveName adds a name to the API server's certificate without a restart, and
// removes it. A user's kubeconfig is refused for a name that it lacks.
func serveName(t *testing.T, master machine) {
	const name = "k8s.example.com"
	const user = "kube-bootstrap kubeconfig --user anna --group dev --ttl 10m --server https://"
	started := func() string {
		return master.kubectl(t, "-n kube-system get pod kube-apiserver-"+master.name+" -o 'jsonpath={.status.containerStatuses[0].state.running.startedAt}'")
	}
	before := started()
	if out, err := master.try(t.Context(), user+name+" 2>&1"); err == nil || !strings.Contains(out, "[server]") {
		t.Errorf("a kubeconfig for a name that the certificate lacks: %v\n%s", err, out)
	}
	master.sh(t, "kube-bootstrap master --tls-san "+name+" && "+user+name)
	out := master.sh(t, user+master.ip+":6443 --file anna.conf && KUBECONFIG=anna.conf kubectl auth whoami; rm anna.conf")
	if !strings.Contains(out, "anna") || !strings.Contains(out, "[dev system:authenticated]") {
		t.Errorf("the user of the kubeconfig is\n%s", out)
	}
	master.sh(t, "kube-bootstrap master --tls-san= && ! "+user+name+" && kube-bootstrap status")
	if after := started(); after != before {
		t.Errorf("the API server started at %s, and again at %s", before, after)
	}
}

// markOwn changes the labels and taints that a host can change on its own node.
func markOwn(t *testing.T, master, worker machine) {
	for _, c := range []struct {
		on        machine
		run, want string
	}{
		{worker, "worker --node-label disk=ssd", "ssd"},
		{worker, "worker --node-label=", ""},
		{master, "master --no-dedicated --node-taint mine=x:PreferNoSchedule", "mine"},
		{master, "master --no-dedicated=false --node-taint=", "node-role.kubernetes.io/control-plane"},
	} {
		c.on.sh(t, "kube-bootstrap "+c.run)
		if got := master.kubectl(t, "get node "+c.on.name+" -o 'jsonpath={.metadata.labels.disk}{.spec.taints[*].key}'"); got != c.want {
			t.Errorf("%s: labels and taints are %q, want %q", c.run, got, c.want)
		}
	}
	markOther(t, master, worker)
}

// markOther has a control plane change the marks of a worker. The worker's
// kubelet says that they include a taint of an administrator, which must stay.
func markOther(t *testing.T, master, worker machine) {
	master.kubectl(t, "taint node "+worker.name+" quarantine=1:PreferNoSchedule")
	worker.sh(t, `docker exec kubelet kubectl --kubeconfig /etc/kubernetes/kubelet.conf annotate --overwrite node `+worker.name+
		` 'kube-bootstrap.dev/marks={"taints":["quarantine=1:PreferNoSchedule"]}'`)
	for _, c := range []struct{ marks, want string }{{" --node-taint own=1:PreferNoSchedule", "own quarantine"}, {"", "quarantine"}} {
		master.sh(t, "kube-bootstrap mark "+worker.name+c.marks)
		keys := strings.Fields(master.kubectl(t, "get node "+worker.name+" -o 'jsonpath={.spec.taints[*].key}'"))
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("mark%s: taints are %q, want %q", c.marks, got, c.want)
		}
	}
	master.kubectl(t, "taint node "+worker.name+" quarantine-")
	worker.sh(t, "kube-bootstrap worker --bundle "+bundle) // writes its own annotation again
}
