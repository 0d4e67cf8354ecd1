//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/pages"
)

// clusterUser is the user of a cluster of containers, with the tests of this package.
type clusterUser struct{ localcluster.User }

// TestNodes does what docs/clusters.md and docs/nodes.md say, while a service is asked all the
// time. Nothing is left at the end.
func TestNodes(t *testing.T) {
	l := clusterUser{localcluster.User{Cluster: "e2e-n", Subnet: "10.212.0.0/16", Dir: t.TempDir()}}
	clusters, nodes := pages.Read(t, "clusters.md"), pages.Read(t, "nodes.md")
	l.Sh(t, "kube-bootstrap cluster clean --yes --keep-images || [ $? = 3 ]") // of what a killed run left
	before := l.World(t)
	l.Begin(t, clusters)
	use, end := clusters.Split(t, "## Stop and remove")
	for _, block := range use.Commands() {
		l.Sh(t, block)
	}
	t.Run("what one node has for itself", l.spec)
	t.Run("other labels and taints", l.remark)
	l.Sh(t, "kubectl get configmap from-addon")
	l.Deploy(t)
	l.Sh(t,
		`kubectl expose deployment web --name outside --type NodePort --port 8080 --overrides `+
			`'{"spec":{"ports":[{"port":8080,"nodePort":30080}]}}'`)
	l.Sh(t, "curl -sf --retry 10 --retry-all-errors -m 5 http://127.0.0.1:18080/")
	stop := l.Poll(t)
	t.Run("the page about nodes", func(t *testing.T) {
		for _, block := range nodes.Commands() {
			out := l.Sh(t, strings.Replace(block, "node stop web ",
				"node ssh web -- touch /root/mark /var/lib/mark && kube-bootstrap node stop web ", 1))
			if strings.Contains(block, "docker info") && !strings.Contains(out, "e2e-n-worker-1") {
				t.Errorf("docker-env leads to %s", out)
			}
		}
		l.Gone(t, hosts.Machine{Name: "e2e-n-web", IP: "10.212.0.12"})
	})
	t.Run("pods of an image that a node built", l.builtOnANode)
	t.Run("a registry for the cluster", l.localRegistry)
	t.Run("addons, off and on under load", l.addons)
	t.Run("a worker that died", l.deadWorker)
	stop()
	t.Run("named errors", l.refusals)
	t.Run("a node that cannot go keeps its pods", l.staysSchedulable)
	t.Run("a node without a route", l.unreachable)
	for line := range strings.Lines(strings.Join(end.Commands(), "")) {
		l.Sh(t, line)
		if strings.Contains(line, "cluster down") {
			l.Refused(t, "node start worker-1", "[cluster-off]")
		}
	}
	l.Sh(t, "docker rmi my/app:dev localhost:5001/my/app:dev && rm -rf app report")
	l.LeavesNothing(t, "clean", before)
}

// spec holds the node db against what the file says.
func (l clusterUser) spec(t *testing.T) {
	got := l.Sh(t,
		`kubectl get node e2e-n-db -o 'jsonpath={.metadata.labels.disk} `+
			`{.spec.taints[0].key}={.spec.taints[0].value}:{.spec.taints[0].effect} `+
			`{.status.allocatable.cpu} {.status.allocatable.memory} {.status.allocatable.ephemeral-storage} `+
			`{.status.allocatable.pods}'`)
	got = strings.Replace(got, "3221225472", "3Gi", 1) // which of the two the kubelet prints depends on its arithmetic
	if want := "ssd dedicated=db:NoSchedule 1 2Gi 3Gi 50"; got != want {
		t.Errorf("node db is %q, want %q", got, want)
	}
	if got := l.Sh(t, "kube-bootstrap node ssh db 'test -d /mnt/srv && ! touch /mnt/srv/x 2>/dev/null && "+
		"echo read-only'"); got != "read-only" {
		t.Errorf("the mount of the node is %q", got)
	}
	if limit := hosts.Docker(t, "inspect", "e2e-n-db", "-f",
		"{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}"); limit != "2147483648 1000000000" {
		t.Errorf("its host has %s", limit)
	}
}

// remark changes labels and taints of the node db in the file, and others with
// kubectl as a user would. The latter stay.
func (l clusterUser) remark(t *testing.T) {
	const marks = `kubectl get node e2e-n-db -o ` +
		`'jsonpath={.metadata.labels.disk},{.metadata.labels.tier},{.metadata.labels.mine} {range .spec.taints[*]}` +
		`{.key}={.value}:{.effect} {end}'`
	l.Sh(t, "kubectl label node e2e-n-db mine=yes && kubectl taint node e2e-n-db mine=yes:PreferNoSchedule")
	up := func(labels, taints string) {
		l.Sh(t, fmt.Sprintf("sed -e 's/{disk: ssd}/%s/' -e 's/\\[\"dedicated.*\\]/%s/' cluster.yaml >other.yaml && "+
			"kube-bootstrap cluster up -f other.yaml --progress none", labels, taints))
	}
	up("{tier: gold}", "[]")
	if got := l.Sh(t, marks); strings.TrimSpace(got) != ",gold,yes mine=yes:PreferNoSchedule" {
		t.Errorf("node db is %q", got)
	}
	up("{disk: ssd}", `["dedicated=db:NoSchedule"]`)
	if got := l.Sh(t, marks); !strings.HasPrefix(got, "ssd,,yes ") ||
		!strings.Contains(got, "dedicated=db:NoSchedule") {
		t.Errorf("node db is %q", got)
	}
}

// builtOnANode builds an image with the Docker of a node. Pods on that node can
// use it at once, and pods on other nodes after load-image. The port to that
// Docker does not stay open.
func (l clusterUser) builtOnANode(t *testing.T) {
	run := func(name, node string) string {
		return "kubectl run " + name + " --image my/own:dev --image-pull-policy Never --overrides '" +
			`{"spec":{"nodeName":"e2e-n-` + node + `"}}` +
			"' -- /probe serve; kubectl wait --for condition=Ready pod/" + name + " --timeout 300s"
	}
	l.Sh(t, `eval "$(kube-bootstrap node docker-env worker-1)"; at=${DOCKER_HOST#tcp://}; docker build -t my/own:dev app
		eval "$(kube-bootstrap node docker-env --unset)"; curl -sk https://$at || [ $? = 7 ]`) // refused
	l.Sh(t, run("own", "worker-1"))
	l.Sh(t, "kube-bootstrap cluster load-image my/own:dev --from worker-1; "+run("others", "db"))
	l.Sh(t, "kubectl delete pod own others --now")
}

// deadWorker adds a worker of a name that there was before, which must be a new
// one, kills it and removes it. Then nothing that was on its disk opens anything.
func (l clusterUser) deadWorker(t *testing.T) {
	l.Sh(t, "kube-bootstrap node add --name web")
	if label := l.Sh(t, "kubectl get node e2e-n-web -o 'jsonpath={.metadata.labels.tier}'"); label != "" {
		t.Errorf("it has the label of the one before, tier=%s", label)
	}
	dead := l.Node(t, "web")
	dead.Sh(t, "! ls /root/mark /var/lib/mark 2>/dev/null")
	opens := stolenDisk(t, l.Node(t, "master-1"), dead)
	if all := opens(); len(all) < 4 {
		t.Errorf("the keys of a worker open only %q", all)
	}
	hosts.Power(t, "kill", dead)
	l.Sh(t, "kube-bootstrap node remove web --yes --force")
	l.Gone(t, dead)
	closed(t, opens)
}
