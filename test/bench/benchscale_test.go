//go:build e2e

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// clusterUser is the user of a cluster of containers, with what is measured of it.
type clusterUser struct{ localcluster.User }

const (
	kwokVersion = "v0.8.0"
	scaleStep   = 500 // hosts that are added between two measurements
	scaleSteps  = 2
)

// TestBenchScale measures a cluster of one control plane and one worker on a
// flannel network of 4,096 subnets, beside hosts that do not exist: each is a
// node that kwok keeps Ready, and a lease in etcd. It asserts no time.
func TestBenchScale(t *testing.T) {
	l := clusterUser{localcluster.User{Cluster: "bench-s", Subnet: "10.219.0.0/16", Dir: t.TempDir()}}
	t.Cleanup(func() {
		if out, err := l.Try(context.Background(), "kube-bootstrap cluster clean --yes"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	l.Sh(t, "kube-bootstrap cluster up --progress none --addons none --flannel-network 10.224.0.0/12 && "+
		"kube-bootstrap cluster kubeconfig --merge")
	l.Node(t, "master-1").Put(t, hosts.Built.Probe, "/usr/local/bin/probe")
	startKwok(t, l)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "hosts\tadd a worker s\tremove s\tstatus s\tcluster status s\tnode list s\t"+
		"flanneld MB\tagent MB\tagent CPU s/min\tworker's agent MB\tCPU s/min\trequests/min\tload\t")
	for n := 0; n <= scaleSteps; n++ {
		if n > 0 {
			l.addHosts(t, (n-1)*scaleStep)
		}
		l.scaleRow(t, table, n*scaleStep)
	}
	fmt.Printf("\none run on %d CPUs, kwok %s\n", runtime.NumCPU(), kwokVersion)
	_ = table.Flush()
}

// startKwok runs kwok for the nodes that carry its annotation, until the test
// ends.
func startKwok(t *testing.T, l clusterUser) {
	t.Helper()
	install := host.Command{
		Args: []string{"go", "install", "sigs.k8s.io/kwok/cmd/kwok@" + kwokVersion},
		Env:  []string{"GOBIN=" + l.Dir, "CGO_ENABLED=0", "GOFLAGS=-mod=mod"},
	}
	if _, err := install.Run(t.Context()); err != nil {
		t.Fatal("build kwok: ", err)
	}
	log, err := os.Create(filepath.Join(l.Dir, "kwok.log"))
	must.NoError(t, err)
	module, err := host.Command{
		Args: []string{"go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok@" + kwokVersion},
		Env:  []string{"GOFLAGS=-mod=mod"}, Dir: l.Dir,
	}.Run(t.Context())
	must.NoError(t, err)
	stages := filepath.Join(strings.TrimSpace(string(module)), "kustomize/stage/node")
	kwok := exec.CommandContext(t.Context(), filepath.Join(l.Dir, "kwok"), "--manage-all-nodes=false",
		"--config="+stages+"/fast/node-initialize.yaml",
		"--config="+stages+"/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--node-lease-duration-seconds=40")
	kwok.Env, kwok.Stdout, kwok.Stderr = append(os.Environ(), l.Env()...), log, log
	must.NoError(t, kwok.Start())
	t.Cleanup(func() { _ = kwok.Wait() })
}

// addHosts adds the hosts from number first on, and waits until all are Ready.
func (l clusterUser) addHosts(t *testing.T, first int) {
	t.Helper()
	nodes := make([]map[string]any, scaleStep)
	for i := range nodes {
		nodes[i] = scaleNode(first + i)
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": nodes})
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(filepath.Join(l.Dir, "nodes.json"), list, 0o600))
	l.Sh(t, "kubectl create -f nodes.json >/dev/null")
	master := l.Node(t, "master-1")
	master.Sh(t, fmt.Sprintf("probe leases https://%s:2379 %d 10.230.0.0 %s", master.IP, first+scaleStep,
		scaleAddress(0)))
	wait.Until(t, 5*time.Minute, "all nodes Ready", func() error {
		ready, err := l.Try(t.Context(), "kubectl get nodes --no-headers | grep -cw Ready")
		if want := strconv.Itoa(first + scaleStep + 2); err == nil && ready != want {
			return fmt.Errorf("%s of %s", ready, want)
		}
		return err
	})
}

func scaleAddress(i int) string { return fmt.Sprintf("10.219.%d.%d", 100+i/256, i%256) }

// scaleNode is a node that takes no pods.
func scaleNode(i int) map[string]any {
	name := fmt.Sprintf("host-%04d", i)
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": name, "annotations": map[string]string{"kwok.x-k8s.io/node": "fake"},
			"labels": map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
		},
		"spec": map[string]any{
			"taints": []map[string]string{{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}},
		},
		"status": map[string]any{"addresses": []map[string]string{
			{"type": "InternalIP", "address": scaleAddress(i)}, {"type": "Hostname", "address": name},
		}},
	}
}

func (l clusterUser) scaleRow(t *testing.T, table *tabwriter.Writer, hosts int) {
	t.Helper()
	seconds := func(script string) float64 {
		began := time.Now()
		l.Sh(t, script)
		return time.Since(began).Seconds()
	}
	master, worker := l.Node(t, "master-1"), l.Node(t, "worker-1")
	added, removed := seconds("kube-bootstrap node add --name more --progress none"),
		seconds("kube-bootstrap node remove more --yes --progress none")
	time.Sleep(time.Minute) // what the changes caused has ended
	before := [2]float64{agentCPU(t, master), agentCPU(t, worker)}
	time.Sleep(time.Minute)
	cpu := [2]float64{agentCPU(t, master) - before[0], agentCPU(t, worker) - before[1]}
	requests := master.Sh(t, `since=$(date -u -d '-1 minute' +%Y-%m-%dT%H:%M:%S)
		cat /var/log/kubernetes/audit/*.log | grep '"stage":"ResponseComplete"' | grep '"userAgent":"kube-bootstrap/' |
		sed 's/.*"requestReceivedTimestamp":"\([^"]*\)".*/\1/' | awk -v since="$since" '$0 > since' | wc -l`)
	fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.2f\t%.0f\t%.2f\t%s\t%s\t\n", hosts, added,
		removed,
		seconds("docker exec "+master.Name+" kube-bootstrap status >/dev/null"),
		seconds("kube-bootstrap cluster status >/dev/null"), seconds("kube-bootstrap node list >/dev/null"),
		resident(t, master, "flanneld"), resident(t, master, "[k]ube-bootstrap agent"), cpu[0],
		resident(t, worker, "[k]ube-bootstrap agent"), cpu[1], requests, loadAverage())
}

// resident returns megabytes of memory of the oldest process whose command line
// matches.
func resident(t *testing.T, m hosts.Machine, pattern string) float64 {
	t.Helper()
	kilobytes, err := strconv.ParseFloat(m.Sh(t, "ps -o rss= -p $(pgrep -of '"+pattern+"')"), 64)
	must.NoError(t, err)
	return kilobytes / 1024
}

// agentCPU returns the CPU seconds that the agent has used.
func agentCPU(t *testing.T, m hosts.Machine) float64 {
	t.Helper()
	ticks, err := strconv.ParseFloat(m.Sh(t, "awk '{print $14 + $15}' /proc/$(pgrep -of '[k]ube-bootstrap "+
		"agent')/stat"), 64)
	must.NoError(t, err)
	return ticks / 100
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Fields(string(data))[0]
}
