//go:build e2e

package long

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// localCluster is a cluster of containers, with the tests of this package.
type localCluster struct{ localcluster.Cluster }

// TestSnapshots takes a used cluster through down and up, reboots, snapshots
// and runs that are killed. What was in it must be there each time.
func TestSnapshots(t *testing.T) {
	c := localCluster{
		localcluster.Cluster{
			Name: "e2e-snap", Flags: []string{
				"--workers", "1", "--dind-subnet", "10.194.0.0/16", "--bundle", hosts.Built.Bundle,
			},
		},
	}
	t.Cleanup(func() { c.Cleaned(t) })
	began := time.Now()
	c.Run(t, "up", c.Flags...)
	first := time.Since(began)
	c.use(t)
	before := c.state(t)

	t.Run("down and up", func(t *testing.T) {
		c.Run(t, "down")
		c.isOff(t)
		began := time.Now()
		c.Run(t, "up", c.Flags...)
		t.Logf("up: %s at first, %s after down", first.Round(time.Second/10), time.Since(began).Round(time.Second/10))
		c.same(t, began, before)
	})
	t.Run("reboots in any order", func(t *testing.T) { c.reboots(t, 3, before) })
	t.Run("the lease of a worker ends while all are off", func(t *testing.T) {
		nets := clusters.Subnets(t, c.Master(), c.Worker())
		clusters.ForgetLease(t, c.Master(), c.Worker(), nets)
		c.Run(t, "down")
		began := time.Now()
		c.Run(t, "up", c.Flags...)
		c.same(t, began, before)
		if now := clusters.Subnets(t, c.Master(), c.Worker()); fmt.Sprint(now) != fmt.Sprint(nets) {
			t.Errorf("subnets %v, and before %v", now, nets)
		}
	})
	t.Run("restored twice", func(t *testing.T) {
		c.Run(t, "snapshot", "save", "used")
		for range 2 {
			c.spoil(t)
			began := time.Now()
			c.Run(t, "snapshot", "restore", "--yes", "used")
			c.same(t, began, before)
		}
		c.lists(t, "used")
	})
	t.Run("killed", func(t *testing.T) { c.killed(t, before) })
	t.Run("named errors", c.refuses)
	t.Run("killed while it is created again", c.createdAgain)
}

// createdAgain kills a run that removes the cluster to create it with another
// setting. A run without settings must finish that, and keep no old host.
func (c localCluster) createdAgain(t *testing.T) {
	nodes := func() string { return c.Master().Kubectl(t, "get nodes -o jsonpath={.items[*].metadata.uid}") }
	before, saved := nodes(), c.saved(t)
	c.KillIn(t, "remove the hosts of cluster", 2*time.Second, "up", append(c.Flags, "--flannel-backend", "host-gw",
		"--recreate", "--yes")...)
	c.Run(t, "up", "--bundle", hosts.Built.Bundle)
	c.Master().Sh(t, "! ip link show flannel.1 2>/dev/null")
	now := strings.Fields(nodes())
	if len(now) != 2 || strings.Contains(before, now[0]) || strings.Contains(before, now[1]) {
		t.Errorf("nodes %v, and before %s", now, before)
	}
	c.lists(t, saved...)
}

// useYAML is a workload that a restore must bring back: a Secret, and a stateful
// set with a volume of the node, a volume of the pod, and an image that no registry
// has.
const useYAML = `apiVersion: v1
kind: Secret
metadata: {name: used}
stringData: {word: kept}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: used}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  hostPath: {path: /srv/used, type: DirectoryOrCreate}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: used}
spec:
  serviceName: used
  selector: {matchLabels: {app: used}}
  template:
    metadata: {labels: {app: used}}
    spec:
      containers:
      - {name: probe, image: "` + hosts.ProbeImage + `", imagePullPolicy: Never, command: [/probe, serve],
         volumeMounts: [{name: data, mountPath: /data}, {name: scratch, mountPath: /scratch}]}
      volumes: [{name: scratch, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}`

const scratch = "/var/lib/kubelet/pods/*/volumes/kubernetes.io~empty-dir/scratch"

// use gives the cluster something to lose.
func (c localCluster) use(t *testing.T) {
	t.Helper()
	w := c.Worker()
	w.Put(t, hosts.Built.Probe, "/usr/local/bin/probe")
	w.Sh(t, "mkdir -p /root/probe && cp /usr/local/bin/probe /root/probe/ && tar -C /root/probe -c . | "+
		"docker import - "+hosts.ProbeImage+
		" && docker save "+hosts.ProbeImage+" | ctr -n k8s.io images import - >/dev/null")
	traffic.Apply(t, c.Master(), useYAML)
	c.Master().Kubectl(t, "rollout status statefulset/used --timeout=2m")
	w.Sh(t, "echo row >/srv/used/table && for d in "+scratch+"; do echo draft >$d/note; done && sync")
}

// spoil changes all of it.
func (c localCluster) spoil(t *testing.T) {
	t.Helper()
	c.Master().Kubectl(t, "delete secret/used statefulset/used --now")
	c.Worker().Sh(t, "echo other >/srv/used/table; ctr -n k8s.io images rm docker.io/library/"+hosts.ProbeImage+
		" docker.io/library/"+hosts.ProbeImage+":latest 2>/dev/null; docker rmi -f "+hosts.ProbeImage+" >/dev/null")
}

// state is what was put into the cluster, as the cluster itself tells it.
func (c localCluster) state(t *testing.T) string {
	t.Helper()
	m, w := c.Master(), c.Worker()
	ip := m.Kubectl(t, "get pod used-0 -o jsonpath={.status.podIP}")
	m.Sh(t, "curl -sf --max-time 5 http://"+ip+":8080/ >/dev/null")
	return strings.Join([]string{
		m.Kubectl(t, "get secret used -o jsonpath={.data}"),
		m.Kubectl(t, "get pod used-0 -o jsonpath={.metadata.uid}"),
		m.Kubectl(t, "get nodes -o jsonpath={.items[*].metadata.uid}"),
		w.Sh(t, "cat /srv/used/table "+scratch+"/note"),
		w.Sh(t, "ctr -n k8s.io images ls -q | grep -c probe; docker images -q "+hosts.ProbeImage),
	}, "\n")
}

// same waits until every kubelet has reported since and the workload answers
// again, and compares the state.
func (c localCluster) same(t *testing.T, since time.Time, before string) {
	t.Helper()
	wait.Until(t, 2*time.Minute, "nodes and pods",
		func() error { return clusters.AllReady(t, c.Master(), since.UTC(), 2) })
	wait.Until(t, time.Minute, "the workload", func() error {
		_, err := c.Master().Try(t.Context(),
			`curl -sf --max-time 5 http://$(docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf get `+
				`pod used-0 -o jsonpath={.status.podIP}):8080/ >/dev/null`)
		return err
	})
	if now := c.state(t); now != before {
		t.Errorf("it is now\n%s\nand was\n%s", now, before)
	}
}

func (c localCluster) isOff(t *testing.T) {
	t.Helper()
	if left := hosts.Docker(t, "ps", "-q", "--filter", "label=kube-bootstrap.dev/cluster="+c.Name); left != "" {
		t.Errorf("down leaves running: %s", left)
	}
}

// reboots restarts both hosts, in an order and at a distance as it comes.
func (c localCluster) reboots(t *testing.T, times int, before string) {
	t.Helper()
	for range times {
		names := []string{c.Master().Name, c.Worker().Name}
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		began := time.Now()
		hosts.Docker(t, append([]string{"restart", "-t", fmt.Sprint(rand.IntN(20))}, names...)...)
		c.same(t, time.Now(), before)
		t.Logf("%s: back after %s", strings.Join(names, ", "), time.Since(began).Round(time.Second))
	}
}

func (c localCluster) lists(t *testing.T, want ...string) {
	t.Helper()
	if names := c.saved(t); fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("snapshots %v, want %v", names, want)
	}
}

// saved returns the names of the snapshots that a user has saved.
func (c localCluster) saved(t *testing.T) (names []string) {
	t.Helper()
	type listed struct {
		Name  string
		Hosts []string
		Bytes int64
	}
	for _, s := range hosts.Items[listed](t, c.Run(t, "snapshot", "list", "-o", "json")) {
		if s.Name != snapshot.First { // which up leaves out on a disk that is nearly full
			names = append(names, s.Name)
		}
		if len(s.Hosts) != 2 || s.Bytes == 0 {
			t.Errorf("listed as whole: %+v", s)
		}
	}
	return names
}

// killed kills a save and a restore in each of their steps. A half snapshot is
// not listed, nobody stays frozen, and `up` finishes what was begun.
func (c localCluster) killed(t *testing.T, before string) {
	for in, within := range map[string]time.Duration{"copy 2 hosts": 2 * time.Second, "keep snapshot": 0} {
		c.KillIn(t, in, within, "snapshot", "save", "half")
		began := time.Now()
		c.Run(t, "up", c.Flags...)
		c.same(t, began, before)
		if !strings.Contains(c.Run(t, "snapshot", "list"), "half") {
			c.Run(t, "snapshot", "save", "half")
		}
		c.lists(t, "used", "half")
		c.Run(t, "snapshot", "remove", "--yes", "half")
	}
	for _, in := range []string{"remove the hosts", "put back"} {
		c.KillIn(t, in, 2*time.Second, "snapshot", "restore", "--yes", "used")
		began := time.Now()
		c.Run(t, "up", c.Flags...)
		c.same(t, began, before)
	}
}

// refuses asks for what cannot be.
func (c localCluster) refuses(t *testing.T) {
	for name, args := range map[string][]string{
		"snapshot-exists": {"save", "used"}, "snapshot-missing": {"restore", "none"}, "snapshot-name": {"save", "A b"},
	} {
		_, err := host.Command{Args: c.Command("snapshot", args...)}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "["+name+"]") {
			t.Errorf("%v: %v, want [%s]", args, err, name)
		}
	}
}
