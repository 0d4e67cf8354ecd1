//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
)

// fleetUser is somebody on this machine with a cluster of containers.
type fleetUser struct {
	cluster, subnet string
	dir             string // where the user works
}

func (l fleetUser) env() []string {
	return []string{
		"PATH=" + filepath.Dir(built.binary) + ":" + os.Getenv("PATH"), "KUBECONFIG=" + filepath.Join(l.dir, "kubeconfig"),
		"KUBE_BOOTSTRAP_NAME=" + l.cluster, "KUBE_BOOTSTRAP_CLUSTER=" + l.cluster, "K8S_DIND_DIND_SUBNET=" + l.subnet,
		"KUBE_BOOTSTRAP_BUNDLE=" + built.bundle, "KUBE_BOOTSTRAP_SNAPSHOT=false", "KUBE_BOOTSTRAP_KEEP_IMAGES=true",
	}
}

func (l fleetUser) try(ctx context.Context, script string) (string, error) {
	out, err := host.Command{Args: []string{"bash", "-ec", script}, Env: l.env(), Dir: l.dir}.Run(ctx)
	return strings.TrimSpace(string(out)), err
}

func (l fleetUser) sh(t *testing.T, script string) string {
	t.Helper()
	start := time.Now()
	out, err := l.try(t.Context(), script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	t.Logf("%s: %s", strings.SplitN(script, "\n", 2)[0], time.Since(start).Round(time.Second/10))
	return out
}

// world is what this machine holds of the cluster, and of the user's files.
func (l fleetUser) world(t *testing.T) string {
	t.Helper()
	out, err := l.try(t.Context(), fmt.Sprintf(`
docker ps -a --format 'container {{.Names}}' | grep %[1]s || true
docker volume ls --format 'volume {{.Name}}' | grep %[1]s || true
docker network ls --format 'network {{.Name}}' | grep %[1]s || true
docker images --format 'image {{.Repository}}:{{.Tag}}' | grep %[1]s || true
iptables-save | grep -F '%[2]s' || true
ip -4 addr | grep -F '%[2]s' || true
ip route | grep -F '%[2]s' || true
find ~/.cache/kube-bootstrap . -path ./report -prune -o -path '*%[1]s*' -print
cat kubeconfig || true`, l.cluster, strings.TrimSuffix(l.subnet, "0.0/16")))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNodes does what docs/clusters.md and docs/nodes.md say, between runs that
// are killed; nothing is left at the end.
func TestNodes(t *testing.T) {
	l := fleetUser{cluster: "e2e-n", subnet: "10.212.0.0/16", dir: t.TempDir()}
	clusters, nodes := examples(t, "clusters.md"), examples(t, "nodes.md")
	if err := os.WriteFile(filepath.Join(l.dir, "cluster.yaml"), []byte(clusters.yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	before := l.world(t)
	t.Cleanup(func() { _, _ = l.try(context.Background(), "kube-bootstrap cluster clean; docker rmi -f my/app:dev") })
	l.sh(t, "mkdir app && cp "+built.probe+" app/probe && tar -C app -c . | docker import - my/app:dev")

	l.interrupted(t, before)
	up := "kube-bootstrap cluster up -f cluster.yaml --progress none"
	l.killed(t, up, 4, 8*time.Second)
	l.sh(t, up)
	for _, block := range clusters.before("## Off and away") {
		l.sh(t, block)
	}
	l.spec(t)
	l.serve(t)
	l.killed(t, "kube-bootstrap node add --name web --node-label tier=web --progress none", 3, 4*time.Second)
	stop := l.poll(t)
	for _, block := range nodes.all {
		l.sh(t, block)
	}
	l.sh(t, "kube-bootstrap node stop worker-1 && kube-bootstrap node start worker-1")
	stop()
	l.refusals(t)
	for _, block := range clusters.after("## Off and away") {
		if clean, _, _ := strings.Cut(block, "\n"); strings.Contains(clean, "cluster clean") {
			continue
		}
		l.sh(t, strings.ReplaceAll(block, "kube-bootstrap cluster clean", ": kube-bootstrap cluster clean"))
	}
	l.killed(t, "kube-bootstrap cluster clean", 3, time.Second)
	l.sh(t, "kube-bootstrap cluster clean && docker rmi my/app:dev && rm -rf app report")
	if diff := hosttest.Diff(before, l.world(t)); len(diff) > 0 {
		t.Errorf("clean left:\n%s", strings.Join(diff, "\n"))
	}
}

// killed runs a command several times and kills it at any moment.
func (l fleetUser) killed(t *testing.T, command string, times int, within time.Duration) {
	t.Helper()
	for range times {
		after := time.Duration(rand.Int64N(int64(within)))
		err := l.signalled(t, command, syscall.SIGKILL, after)
		t.Logf("%s: killed after %s: %v", command, after.Round(time.Millisecond), err)
	}
}

func (l fleetUser) signalled(t *testing.T, command string, signal syscall.Signal, after time.Duration) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec "+command)
	cmd.Env, cmd.Dir = append(os.Environ(), l.env()...), l.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(signal) })
	defer timer.Stop()
	return cmd.Wait()
}

// interrupted presses Ctrl-C while the first nodes are made: nothing is left.
func (l fleetUser) interrupted(t *testing.T, before string) {
	t.Helper()
	err := l.signalled(t, "kube-bootstrap cluster up --progress none", syscall.SIGINT, 4*time.Second)
	if err == nil || err.Error() != "exit status 130" {
		t.Errorf("interrupted: %v", err)
	}
	for _, line := range hosttest.Diff(before, l.world(t)) {
		if !strings.Contains(line, "my/app") {
			t.Errorf("interrupted, it left %s", line)
		}
	}
}

// spec holds the node db against what the file says.
func (l fleetUser) spec(t *testing.T) {
	t.Helper()
	got := l.sh(t, `kubectl get node e2e-n-db -o 'jsonpath={.metadata.labels.disk} {.spec.taints[0].key}={.spec.taints[0].value}:{.spec.taints[0].effect} `+
		`{.status.allocatable.cpu} {.status.allocatable.memory} {.status.allocatable.ephemeral-storage} {.status.allocatable.pods}'`)
	if want := "ssd dedicated=db:NoSchedule 1 2Gi 10Gi 50"; got != want {
		t.Errorf("node db is %q, want %q", got, want)
	}
	if limit := l.sh(t, "docker inspect e2e-n-db -f '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}'"); limit != "2147483648 1000000000" {
		t.Errorf("its host has %s", limit)
	}
}

// serve runs a service of two replicas, which nodes come and go under.
func (l fleetUser) serve(t *testing.T) {
	t.Helper()
	l.sh(t, "kubectl apply -f - <<'YAML'\n"+web+"\nYAML\nkubectl rollout status deployment/web --timeout 120s")
}

// poll asks the service again and again until it is stopped; no request may be
// lost.
func (l fleetUser) poll(t *testing.T) (stop func()) {
	t.Helper()
	ip := l.sh(t, "kubectl get service web -o 'jsonpath={.spec.clusterIP}'")
	ctx, cancel := context.WithCancel(t.Context())
	var asked int
	var lost []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			asked++
			if _, err := l.try(ctx, "docker exec e2e-n-master-1 curl -sf -m 5 http://"+ip+":8080/"); err != nil && ctx.Err() == nil {
				lost = append(lost, time.Now().Format(time.TimeOnly)+" "+err.Error())
			}
		}
	}()
	return func() {
		cancel()
		<-done
		t.Logf("%d requests", asked)
		if asked < 20 || len(lost) > 0 {
			t.Errorf("%d of %d requests were lost: %s", len(lost), asked, strings.Join(lost, "\n"))
		}
	}
}

// refusals are what is told before anything is touched.
func (l fleetUser) refusals(t *testing.T) {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for command, want := range map[string]string{
		"node add --name worker-1":                                     "there is a node e2e-n-worker-1 already",
		"node remove master-1":                                         "is the last control plane that runs",
		"node stop nobody":                                             "cluster e2e-n has no node nobody; use one of e2e-n-",
		"node list --cluster e2e-none --output no":                     "must be table, json or yaml",
		"node stop worker-1 --cluster e2e-none":                        "there is no cluster e2e-none",
		"cluster load-image no/such:image":                             "the engine has no image no/such:image",
		"cluster up --name e2e-other":                                  "overlaps with",
		"cluster up --name e2e-big -f big.yaml":                        "nodes need",
		"node docker-env master-9":                                     "has no node master-9",
		"cluster kubeconfig --name e2e-none":                           "no control plane of cluster e2e-none runs",
		fmt.Sprint("cluster up --name e2e-p --api-server-port ", port): "is taken on this machine",
		"cluster up --masters 9":                                       "use 1 to 8",
	} {
		out, err := l.try(t.Context(), "printf '"+tooBig+"' >big.yaml; kube-bootstrap "+command+" 2>&1; rm big.yaml")
		if err == nil || !strings.Contains(out+err.Error(), want) {
			t.Errorf("%s: %v\n%s\nwant %q", command, err, out, want)
		}
	}
}

const tooBig = `apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\ndindSubnet: 10.213.0.0/16\nnodes:\n- {role: control-plane, memory: 9000Gi, disk: 9000Ti}\n`

// page is a page of docs: its ```sh blocks, and the last ```yaml block.
type page struct {
	text, yaml string
	all        []string
}

var fence = regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```")

func examples(t *testing.T, name string) page {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	p := page{text: string(data)}
	for _, m := range fence.FindAllSubmatch(data, -1) {
		if string(m[1]) == "yaml" {
			p.yaml = string(m[2])
		} else {
			p.all = append(p.all, string(m[2]))
		}
	}
	return p
}

func (p page) before(heading string) []string {
	text, _, _ := strings.Cut(p.text, heading)
	return blocks(text)
}

func (p page) after(heading string) []string {
	_, text, _ := strings.Cut(p.text, heading)
	return blocks(text)
}

func blocks(text string) (all []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == "sh" {
			all = append(all, m[2])
		}
	}
	return all
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
        lifecycle: {preStop: {sleep: {seconds: 3}}}
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
