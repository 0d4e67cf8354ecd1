package localcluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/pages"
)

// Begin creates the cluster of docs/clusters.md, and an image on this machine.
func (l User) Begin(t *testing.T, clusters pages.Page) {
	t.Helper()
	must.NoError(t, os.WriteFile(filepath.Join(l.Dir, "cluster.yaml"), []byte(clusters.YAML), 0o600))
	const addon = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-addon}\n"
	must.NoError(t, os.WriteFile(filepath.Join(l.Dir, "app.yaml"), []byte(addon), 0o600))
	t.Cleanup(func() {
		// they are gone unless the test failed
		_, _ = l.Try(context.Background(), "kube-bootstrap cluster clean --yes; "+
			"docker rmi -f my/app:dev localhost:5001/my/app:dev")
	})
	l.Sh(t, "mkdir app && cp "+hosts.Built.Probe+" app/probe && printf 'FROM scratch\nCOPY probe /probe\n"+
		"' >app/Dockerfile && tar -C app -c . | docker import - my/app:dev")
	l.Sh(t, "kube-bootstrap cluster up -f cluster.yaml --progress none")
}

// Deploy starts a service of two pods.
func (l User) Deploy(t *testing.T) {
	t.Helper()
	l.Sh(t, "kubectl apply -f - <<'YAML'\n"+web+"\nYAML\nkubectl rollout status deployment/web --timeout 300s")
}

// Poll asks the service ten times a second until it is stopped. No request may be lost. A slow answer
// is not a lost request. The loop
// runs on a node, because a process in a container for each request would keep the machine busy.
func (l User) Poll(t *testing.T) (stop func()) {
	t.Helper()
	ask := "curl -sf -m 30 http://" + l.Sh(t, "kubectl get service web -o 'jsonpath={.spec.clusterIP}'") +
		":8080/ >/dev/null"
	from := l.Node(t, "db")
	hosts.Soon(t, time.Minute, "the first answer", from, ask)
	type answer struct {
		says string
		err  error
	}
	end := make(chan answer, 1)
	from.Sh(t, "touch /run/poll")
	go func() {
		says, err := from.Try(t.Context(), "while [ -e /run/poll ]; do echo asked; "+ask+
			" || echo \"lost at $(date +%T): $?\"; sleep 0.1; done")
		end <- answer{says, err}
	}()
	return func() {
		from.Sh(t, "rm /run/poll")
		got := <-end
		must.NoError(t, got.err)
		asked := strings.Count(got.says, "asked")
		t.Logf("%d requests", asked)
		if lost := strings.ReplaceAll(got.says, "asked\n", ""); asked < 20 || strings.Contains(lost, "lost") {
			t.Errorf("of %d requests some were lost: %s", asked, lost)
		}
	}
}

// Gone expects nothing to speak of a node any more: no object, no place in
// etcd, no share of the network, no container, no volume.
func (l User) Gone(t *testing.T, m hosts.Machine) {
	t.Helper()
	left := l.Sh(t, "kubectl get nodes -o name | grep "+m.Name+" || true; docker ps -a --format '{{.Names}}' | grep "+
		m.Name+" || true; docker volume ls -q | grep "+m.Name+" || true")
	if left != "" {
		t.Errorf("%s left %s", m.Name, left)
	}
	etcd := clusters.EtcdClient(t, l.Node(t, "master-1"), "apiserver-etcd-client")
	for _, prefix := range []string{"/coreos.com/network/", "/kube-bootstrap/"} {
		found, err := etcd.Get(t.Context(), prefix, clientv3.WithPrefix())
		must.NoError(t, err)
		for _, kv := range found.Kvs {
			if strings.Contains(string(kv.Value), `"`+m.IP+`"`) || string(kv.Value) == m.Name {
				t.Errorf("%s left %s: %s", m.Name, kv.Key, kv.Value)
			}
		}
	}
	users, err := etcd.UserList(t.Context())
	if err != nil || strings.Contains(strings.Join(users.Users, " "), m.Name) {
		t.Errorf("%s has still a user of etcd: %v, %v", m.Name, users, err)
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
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway,
         labelSelector: {matchLabels: {app: web}}}
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

// Refused expects a command to exit with the code for refusals.
func (l User) Refused(t *testing.T, command, want string) {
	t.Helper()
	out, err := l.Try(t.Context(), "code=0; kube-bootstrap "+command+" 2>&1 || code=$?; echo exit $code")
	if err != nil || !strings.Contains(out, want) || !strings.HasSuffix(out, "exit 3") {
		t.Errorf("%s: %v\n%s\nwant %q and exit 3", command, err, out, want)
	}
}
