//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestNodes does what docs/clusters.md and docs/nodes.md say, while a service is asked all the
// time. Nothing is left at the end.
func TestNodes(t *testing.T) {
	l := clusterUser{cluster: "e2e-n", subnet: "10.212.0.0/16", dir: t.TempDir()}
	clusters, nodes := readPage(t, "clusters.md"), readPage(t, "nodes.md")
	l.sh(t, "kube-bootstrap cluster clean --yes --keep-images || [ $? = 3 ]") // of what a killed run left
	before := l.world(t)
	l.begin(t, clusters)
	use, end := clusters.split(t, "## Stop and remove")
	for _, block := range use.commands() {
		l.sh(t, block)
	}
	t.Run("what one node has for itself", l.spec)
	t.Run("other labels and taints", l.remark)
	l.sh(t, "kubectl get configmap from-addon")
	l.deploy(t)
	l.sh(t, `kubectl expose deployment web --name outside --type NodePort --port 8080 --overrides '{"spec":{"ports":[{"port":8080,"nodePort":30080}]}}'`)
	l.sh(t, "curl -sf --retry 10 --retry-all-errors -m 5 http://127.0.0.1:18080/")
	stop := l.poll(t)
	t.Run("the page about nodes", func(t *testing.T) {
		for _, block := range nodes.commands() {
			out := l.sh(t, strings.Replace(block, "node stop web ", "node ssh web -- touch /root/mark /var/lib/mark && kube-bootstrap node stop web ", 1))
			if strings.Contains(block, "docker info") && !strings.Contains(out, "e2e-n-worker-1") {
				t.Errorf("docker-env leads to %s", out)
			}
		}
		l.gone(t, machine{name: "e2e-n-web", ip: "10.212.0.12"})
	})
	t.Run("pods of an image that a node built", l.builtOnANode)
	t.Run("a registry for the cluster", l.localRegistry)
	t.Run("addons, off and on under load", l.addons)
	t.Run("a worker that died", l.deadWorker)
	stop()
	t.Run("named errors", l.refusals)
	t.Run("a node that cannot go keeps its pods", l.staysSchedulable)
	t.Run("a node without a route", l.unreachable)
	for line := range strings.Lines(strings.Join(end.commands(), "")) {
		l.sh(t, line)
		if strings.Contains(line, "cluster down") {
			l.refused(t, "node start worker-1", "[cluster-off]")
		}
	}
	l.sh(t, "docker rmi my/app:dev localhost:5001/my/app:dev && rm -rf app report")
	l.leavesNothing(t, "clean", before)
}

// spec holds the node db against what the file says.
func (l clusterUser) spec(t *testing.T) {
	got := l.sh(t, `kubectl get node e2e-n-db -o 'jsonpath={.metadata.labels.disk} {.spec.taints[0].key}={.spec.taints[0].value}:{.spec.taints[0].effect} `+
		`{.status.allocatable.cpu} {.status.allocatable.memory} {.status.allocatable.ephemeral-storage} {.status.allocatable.pods}'`)
	got = strings.Replace(got, "3221225472", "3Gi", 1) // which of the two the kubelet prints depends on its arithmetic
	if want := "ssd dedicated=db:NoSchedule 1 2Gi 3Gi 50"; got != want {
		t.Errorf("node db is %q, want %q", got, want)
	}
	if got := l.sh(t, "kube-bootstrap node ssh db 'test -d /mnt/srv && ! touch /mnt/srv/x 2>/dev/null && echo read-only'"); got != "read-only" {
		t.Errorf("the mount of the node is %q", got)
	}
	if limit := docker(t, "inspect", "e2e-n-db", "-f", "{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}"); limit != "2147483648 1000000000" {
		t.Errorf("its host has %s", limit)
	}
}

// remark changes labels and taints of the node db in the file, and others with
// kubectl as a user would. The latter stay.
func (l clusterUser) remark(t *testing.T) {
	const marks = `kubectl get node e2e-n-db -o 'jsonpath={.metadata.labels.disk},{.metadata.labels.tier},{.metadata.labels.mine} {range .spec.taints[*]}{.key}={.value}:{.effect} {end}'`
	l.sh(t, "kubectl label node e2e-n-db mine=yes && kubectl taint node e2e-n-db mine=yes:PreferNoSchedule")
	up := func(labels, taints string) {
		l.sh(t, fmt.Sprintf("sed -e 's/{disk: ssd}/%s/' -e 's/\\[\"dedicated.*\\]/%s/' cluster.yaml >other.yaml && kube-bootstrap cluster up -f other.yaml --progress none", labels, taints))
	}
	up("{tier: gold}", "[]")
	if got := l.sh(t, marks); strings.TrimSpace(got) != ",gold,yes mine=yes:PreferNoSchedule" {
		t.Errorf("node db is %q", got)
	}
	up("{disk: ssd}", `["dedicated=db:NoSchedule"]`)
	if got := l.sh(t, marks); !strings.HasPrefix(got, "ssd,,yes ") || !strings.Contains(got, "dedicated=db:NoSchedule") {
		t.Errorf("node db is %q", got)
	}
}

// begin creates the cluster of docs/clusters.md, and an image on this machine.
func (l clusterUser) begin(t *testing.T, clusters page) {
	t.Helper()
	must.NoError(t, os.WriteFile(filepath.Join(l.dir, "cluster.yaml"), []byte(clusters.yaml), 0o600))
	const addon = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-addon}\n"
	must.NoError(t, os.WriteFile(filepath.Join(l.dir, "app.yaml"), []byte(addon), 0o600))
	t.Cleanup(func() {
		_, _ = l.try(context.Background(), "kube-bootstrap cluster clean --yes; docker rmi -f my/app:dev localhost:5001/my/app:dev") // they are gone unless the test failed
	})
	l.sh(t, "mkdir app && cp "+built.probe+" app/probe && printf 'FROM scratch\nCOPY probe /probe\n' >app/Dockerfile && tar -C app -c . | docker import - my/app:dev")
	l.sh(t, "kube-bootstrap cluster up -f cluster.yaml --progress none")
}

// deploy starts a service of two pods.
func (l clusterUser) deploy(t *testing.T) {
	t.Helper()
	l.sh(t, "kubectl apply -f - <<'YAML'\n"+web+"\nYAML\nkubectl rollout status deployment/web --timeout 300s")
}

// poll asks the service ten times a second until it is stopped. No request may be lost. A slow answer
// is not a lost request. The loop
// runs on a node, because a process in a container for each request would keep the machine busy.
func (l clusterUser) poll(t *testing.T) (stop func()) {
	t.Helper()
	ask := "curl -sf -m 30 http://" + l.sh(t, "kubectl get service web -o 'jsonpath={.spec.clusterIP}'") + ":8080/ >/dev/null"
	from := l.node(t, "db")
	soon(t, time.Minute, "the first answer", from, ask)
	type answer struct {
		says string
		err  error
	}
	end := make(chan answer, 1)
	from.sh(t, "touch /run/poll")
	go func() {
		says, err := from.try(t.Context(), "while [ -e /run/poll ]; do echo asked; "+ask+" || echo \"lost at $(date +%T): $?\"; sleep 0.1; done")
		end <- answer{says, err}
	}()
	return func() {
		from.sh(t, "rm /run/poll")
		got := <-end
		must.NoError(t, got.err)
		asked := strings.Count(got.says, "asked")
		t.Logf("%d requests", asked)
		if lost := strings.ReplaceAll(got.says, "asked\n", ""); asked < 20 || strings.Contains(lost, "lost") {
			t.Errorf("of %d requests some were lost: %s", asked, lost)
		}
	}
}

// builtOnANode builds an image with the Docker of a node. Pods on that node can
// use it at once, and pods on other nodes after load-image. The port to that
// Docker does not stay open.
func (l clusterUser) builtOnANode(t *testing.T) {
	run := func(name, node string) string {
		return "kubectl run " + name + " --image my/own:dev --image-pull-policy Never --overrides '" + `{"spec":{"nodeName":"e2e-n-` + node + `"}}` +
			"' -- /probe serve; kubectl wait --for condition=Ready pod/" + name + " --timeout 300s"
	}
	l.sh(t, `eval "$(kube-bootstrap node docker-env worker-1)"; at=${DOCKER_HOST#tcp://}; docker build -t my/own:dev app
		eval "$(kube-bootstrap node docker-env --unset)"; curl -sk https://$at || [ $? = 7 ]`) // refused
	l.sh(t, run("own", "worker-1"))
	l.sh(t, "kube-bootstrap cluster load-image my/own:dev --from worker-1; "+run("others", "db"))
	l.sh(t, "kubectl delete pod own others --now")
}

// deadWorker adds a worker of a name that there was before, which must be a new
// one, kills it and removes it. Then nothing that was on its disk opens anything.
func (l clusterUser) deadWorker(t *testing.T) {
	l.sh(t, "kube-bootstrap node add --name web")
	if label := l.sh(t, "kubectl get node e2e-n-web -o 'jsonpath={.metadata.labels.tier}'"); label != "" {
		t.Errorf("it has the label of the one before, tier=%s", label)
	}
	dead := l.node(t, "web")
	dead.sh(t, "! ls /root/mark /var/lib/mark 2>/dev/null")
	opens := stolenDisk(t, l.node(t, "master-1"), dead)
	if all := opens(); len(all) < 4 {
		t.Errorf("the keys of a worker open only %q", all)
	}
	power(t, "kill", dead)
	l.sh(t, "kube-bootstrap node remove web --yes --force")
	l.gone(t, dead)
	closed(t, opens)
}

// gone expects nothing to speak of a node any more: no object, no place in
// etcd, no share of the network, no container, no volume.
func (l clusterUser) gone(t *testing.T, m machine) {
	t.Helper()
	left := l.sh(t, "kubectl get nodes -o name | grep "+m.name+" || true; docker ps -a --format '{{.Names}}' | grep "+m.name+" || true; docker volume ls -q | grep "+m.name+" || true")
	if left != "" {
		t.Errorf("%s left %s", m.name, left)
	}
	etcd := etcdClient(t, l.node(t, "master-1"), "apiserver-etcd-client")
	for _, prefix := range []string{"/coreos.com/network/", "/kube-bootstrap/"} {
		found, err := etcd.Get(t.Context(), prefix, clientv3.WithPrefix())
		must.NoError(t, err)
		for _, kv := range found.Kvs {
			if strings.Contains(string(kv.Value), `"`+m.ip+`"`) || string(kv.Value) == m.name {
				t.Errorf("%s left %s: %s", m.name, kv.Key, kv.Value)
			}
		}
	}
	users, err := etcd.UserList(t.Context())
	if err != nil || strings.Contains(strings.Join(users.Users, " "), m.name) {
		t.Errorf("%s has still a user of etcd: %v, %v", m.name, users, err)
	}
}

const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations: [{key: dedicated, operator: Exists}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: web
        image: my/app:dev
        imagePullPolicy: Never
        command: [/probe, serve]
        lifecycle: {preStop: {sleep: {seconds: 10}}} # until kube-proxy of a busy machine knows
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8080}]}`
