//go:build e2e && long

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// TestSnapshots takes a used cluster through down and up, reboots, snapshots
// and runs that are killed. What was in it must be there each time.
func TestSnapshots(t *testing.T) {
	c := localCluster{name: "e2e-snap", flags: []string{"--workers", "1", "--dind-subnet", "10.194.0.0/16", "--bundle", built.bundle}}
	t.Cleanup(func() { c.cleaned(t) })
	began := time.Now()
	c.run(t, "up", c.flags...)
	first := time.Since(began)
	c.use(t)
	before := c.state(t)

	t.Run("down and up", func(t *testing.T) {
		c.run(t, "down")
		c.isOff(t)
		began := time.Now()
		c.run(t, "up", c.flags...)
		t.Logf("up: %s at first, %s after down", first.Round(time.Second/10), time.Since(began).Round(time.Second/10))
		c.same(t, began, before)
	})
	t.Run("reboots in any order", func(t *testing.T) { c.reboots(t, 3, before) })
	t.Run("the lease of a worker ends while all are off", func(t *testing.T) {
		nets := subnets(t, c.master(), c.worker())
		forgetLease(t, c.master(), c.worker(), nets)
		c.run(t, "down")
		began := time.Now()
		c.run(t, "up", c.flags...)
		c.same(t, began, before)
		if now := subnets(t, c.master(), c.worker()); fmt.Sprint(now) != fmt.Sprint(nets) {
			t.Errorf("subnets %v, and before %v", now, nets)
		}
	})
	t.Run("restored twice", func(t *testing.T) {
		c.run(t, "snapshot", "save", "used")
		for range 2 {
			c.spoil(t)
			began := time.Now()
			c.run(t, "snapshot", "restore", "--yes", "used")
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
	nodes := func() string { return c.master().kubectl(t, "get nodes -o jsonpath={.items[*].metadata.uid}") }
	before, saved := nodes(), c.saved(t)
	c.killIn(t, "remove the hosts of cluster", 2*time.Second, "up", append(c.flags, "--flannel-backend", "host-gw", "--recreate", "--yes")...)
	c.run(t, "up", "--bundle", built.bundle)
	c.master().sh(t, "! ip link show flannel.1 2>/dev/null")
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
      - {name: probe, image: "` + probeImage + `", imagePullPolicy: Never, command: [/probe, serve],
         volumeMounts: [{name: data, mountPath: /data}, {name: scratch, mountPath: /scratch}]}
      volumes: [{name: scratch, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}`

const scratch = "/var/lib/kubelet/pods/*/volumes/kubernetes.io~empty-dir/scratch"

// use gives the cluster something to lose.
func (c localCluster) use(t *testing.T) {
	t.Helper()
	w := c.worker()
	w.put(t, built.probe, "/usr/local/bin/probe")
	w.sh(t, "mkdir -p /root/probe && cp /usr/local/bin/probe /root/probe/ && tar -C /root/probe -c . | docker import - "+probeImage+
		" && docker save "+probeImage+" | ctr -n k8s.io images import - >/dev/null")
	apply(t, c.master(), useYAML)
	c.master().kubectl(t, "rollout status statefulset/used --timeout=2m")
	w.sh(t, "echo row >/srv/used/table && for d in "+scratch+"; do echo draft >$d/note; done && sync")
}

// spoil changes all of it.
func (c localCluster) spoil(t *testing.T) {
	t.Helper()
	c.master().kubectl(t, "delete secret/used statefulset/used --now")
	c.worker().sh(t, "echo other >/srv/used/table; ctr -n k8s.io images rm docker.io/library/"+probeImage+" docker.io/library/"+probeImage+":latest 2>/dev/null; docker rmi -f "+probeImage+" >/dev/null")
}

// state is what was put into the cluster, as the cluster itself tells it.
func (c localCluster) state(t *testing.T) string {
	t.Helper()
	m, w := c.master(), c.worker()
	ip := m.kubectl(t, "get pod used-0 -o jsonpath={.status.podIP}")
	m.sh(t, "curl -sf --max-time 5 http://"+ip+":8080/ >/dev/null")
	return strings.Join([]string{
		m.kubectl(t, "get secret used -o jsonpath={.data}"),
		m.kubectl(t, "get pod used-0 -o jsonpath={.metadata.uid}"),
		m.kubectl(t, "get nodes -o jsonpath={.items[*].metadata.uid}"),
		w.sh(t, "cat /srv/used/table "+scratch+"/note"),
		w.sh(t, "ctr -n k8s.io images ls -q | grep -c probe; docker images -q "+probeImage),
	}, "\n")
}

// same waits until every kubelet has reported since and the workload answers
// again, and compares the state.
func (c localCluster) same(t *testing.T, since time.Time, before string) {
	t.Helper()
	eventually(t, 2*time.Minute, "nodes and pods", func() error { return allReady(t, c.master(), since.UTC(), 2) })
	eventually(t, time.Minute, "the workload", func() error {
		_, err := c.master().try(t.Context(), `curl -sf --max-time 5 http://$(docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf get pod used-0 -o jsonpath={.status.podIP}):8080/ >/dev/null`)
		return err
	})
	if now := c.state(t); now != before {
		t.Errorf("it is now\n%s\nand was\n%s", now, before)
	}
}

func (c localCluster) isOff(t *testing.T) {
	t.Helper()
	if left := docker(t, "ps", "-q", "--filter", "label=kube-bootstrap.dev/cluster="+c.name); left != "" {
		t.Errorf("down leaves running: %s", left)
	}
}

// reboots restarts both hosts, in an order and at a distance as it comes.
func (c localCluster) reboots(t *testing.T, times int, before string) {
	t.Helper()
	for range times {
		names := []string{c.master().name, c.worker().name}
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		began := time.Now()
		docker(t, append([]string{"restart", "-t", fmt.Sprint(rand.IntN(20))}, names...)...)
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
	for _, s := range items[listed](t, c.run(t, "snapshot", "list", "-o", "json")) {
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
		c.killIn(t, in, within, "snapshot", "save", "half")
		began := time.Now()
		c.run(t, "up", c.flags...)
		c.same(t, began, before)
		if !strings.Contains(c.run(t, "snapshot", "list"), "half") {
			c.run(t, "snapshot", "save", "half")
		}
		c.lists(t, "used", "half")
		c.run(t, "snapshot", "remove", "--yes", "half")
	}
	for _, in := range []string{"remove the hosts", "put back"} {
		c.killIn(t, in, 2*time.Second, "snapshot", "restore", "--yes", "used")
		began := time.Now()
		c.run(t, "up", c.flags...)
		c.same(t, began, before)
	}
}

// refuses asks for what cannot be.
func (c localCluster) refuses(t *testing.T) {
	for name, args := range map[string][]string{
		"snapshot-exists": {"save", "used"}, "snapshot-missing": {"restore", "none"}, "snapshot-name": {"save", "A b"},
	} {
		_, err := host.Command{Args: c.command("snapshot", args...)}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "["+name+"]") {
			t.Errorf("%v: %v, want [%s]", args, err, name)
		}
	}
}
