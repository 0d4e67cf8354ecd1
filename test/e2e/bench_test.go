//go:build e2e && bench

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const benchRuns = 5

// TestBench makes the same cluster again and again, on hosts that have the
// images, in turn with kubeadm, and prints medians, and then what both use while
// nothing happens. It asserts no time. EARLIER names the file of an earlier
// program, which is then measured in turn with this one.
func TestBench(t *testing.T) {
	made := hosts(t, "docker-28.5", "10.193.9.0/24", "bench-a", "bench-b")
	b := bench{master: made[0], worker: made[1], program: built.binary, figures: newFigures()}
	b.worker.sh(t, "mkdir /root/probe && cp /usr/local/bin/probe /root/probe/ && tar -C /root/probe -c . | docker import - "+probeImage)
	nothing := func() {}
	b.once(t, nothing) // loads the images
	b.figures = newFigures()
	p := newPeer(t, b.master, b.worker)
	earlier := bench{b.master, b.worker, os.Getenv("EARLIER"), newFigures()}
	for range benchRuns {
		if earlier.program != "" {
			earlier.once(t, nothing)
		}
		b.once(t, nothing)
		p.once(t, nothing)
	}
	if earlier.program != "" {
		fmt.Print("\nthe earlier program\n", earlier.figures.table(p.figures))
	}
	used := idle{bare: usages(t, 0, b.master, b.worker)}
	bench{b.master, b.worker, b.program, newFigures()}.once(t, func() {
		used.ours = usages(t, time.Minute, b.master, b.worker)
	})
	peer{p.master, p.worker, newFigures()}.once(t, func() { used.peers = usages(t, time.Minute, p.master, p.worker) })
	timeline := []byte(b.master.sh(t, "cat /root/timeline.json"))
	if err := os.WriteFile("../../_output/timeline.json", timeline, 0o644); err != nil {
		t.Error(err)
	}
	fmt.Print(b.figures.table(p.figures), "\n", used.table())
}

type bench struct {
	master, worker machine
	program        string // a file on this machine
	figures        figures
}

// once makes a cluster, calls use and takes the cluster back.
func (b bench) once(t *testing.T, use func()) {
	t.Helper()
	for _, m := range []machine{b.master, b.worker} {
		m.put(t, b.program, "/usr/local/bin/kube-bootstrap")
	}
	b.master.sh(t, "probe watch "+b.master.name+" "+b.worker.name+" </dev/null >/run/bench 2>&1 &")
	made := b.master.timed(t, "kube-bootstrap master --progress json --timeline /root/timeline.json --bundle "+bundle)
	b.figures.steps("master", made)
	b.figures.add("master returned", made.end.Sub(made.begin))
	apply(t, b.master, benchPods)
	again := b.master.timed(t, "kube-bootstrap master --bundle "+bundle)
	b.figures.add("master, second run", again.end.Sub(again.begin))
	b.worker.sh(t, "docker save "+probeImage+" | ctr -n k8s.io images import - >/dev/null")
	join := joinCommand(t, b.master)
	joined := b.worker.timed(t, join+" --progress json --bundle "+bundle)
	b.figures.steps("worker", joined)
	b.figures.add("worker returned", joined.end.Sub(joined.begin))

	b.figures.seen(seen(t, b.master), made.begin, joined.begin)
	use()
	for i, m := range []machine{b.worker, b.master} {
		gone := m.timed(t, "kube-bootstrap turndown --yes --keep-images")
		b.figures.add("turndown of the "+[]string{"worker", "master"}[i], gone.end.Sub(gone.begin))
	}
	b.figures.load()
}

// seen is what the watcher on a master saw, and when.
func seen(t *testing.T, master machine) map[string]time.Time {
	t.Helper()
	all := map[string]time.Time{}
	eventually(t, time.Minute, "the first packet", func() error {
		out := master.sh(t, "cat /run/bench")
		for line := range strings.Lines(out) {
			at, what, _ := strings.Cut(strings.TrimSpace(line), " ")
			if nano, err := strconv.ParseInt(at, 10, 64); err == nil {
				all[what] = time.Unix(0, nano)
			}
		}
		if len(all) < 5 {
			return fmt.Errorf("seen so far:\n%s", out)
		}
		return nil
	})
	return all
}

// timing is when a command ran on a machine, by the clock of the machine, and
// what it told.
type timing struct {
	begin, end time.Time
	stderr     string
}

func (m machine) timed(t *testing.T, command string) timing {
	t.Helper()
	out := m.sh(t, "date +%s%N; { "+command+"; } >/dev/null 2>/run/stderr || { tail -n 20 /run/stderr; exit 1; }; date +%s%N; cat /run/stderr")
	begin, rest, _ := strings.Cut(out, "\n")
	end, told, _ := strings.Cut(rest, "\n")
	var at [2]time.Time
	for i, text := range []string{begin, end} {
		nano, err := strconv.ParseInt(text, 10, 64)
		must.NoError(t, err)
		at[i] = time.Unix(0, nano)
	}
	return timing{at[0], at[1], told}
}

// benchPods puts a pod that answers on every worker, as soon as it can.
const benchPods = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: bench}
spec:
  selector: {matchLabels: {app: bench}}
  template:
    metadata: {labels: {app: bench}}
    spec:
      containers: [{name: probe, image: "` + probeImage + `", imagePullPolicy: Never, command: [/probe, serve]}]`
