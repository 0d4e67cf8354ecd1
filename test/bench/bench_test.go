//go:build e2e

package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

const benchRuns = 5

// TestBench makes the same cluster again and again, on hosts that have the
// images, in turn with kubeadm, and prints medians, and then what both use while
// nothing happens. It asserts no time. EARLIER names the file of an earlier
// program, which is then measured in turn with this one.
func TestBench(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.193.9.0/24", "bench-a", "bench-b")
	b := bench{master: made[0], worker: made[1], program: hosts.Built.Binary, figures: newFigures()}
	hosts.LoadProbe(t, b.worker)
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
	timeline := []byte(b.master.Sh(t, "cat /root/timeline.json"))
	if err := os.WriteFile("../../_output/timeline.json", timeline, 0o644); err != nil {
		t.Error(err)
	}
	fmt.Print(b.figures.table(p.figures), "\n", used.table())
}

type bench struct {
	master, worker hosts.Machine
	program        string // a file on this machine
	figures        figures
}

// once makes a cluster, calls use and takes the cluster back.
func (b bench) once(t *testing.T, use func()) {
	t.Helper()
	for _, m := range []hosts.Machine{b.master, b.worker} {
		m.Put(t, b.program, "/usr/local/bin/kube-bootstrap")
	}
	b.master.Sh(t, "probe watch "+b.master.Name+" "+b.worker.Name+" </dev/null >/run/bench 2>&1 &")
	made := timed(t, b.master, "kube-bootstrap master --progress json --timeline /root/timeline.json --bundle "+
		hosts.Bundle)
	b.figures.steps("master", made)
	b.figures.add("master returned", made.end.Sub(made.begin))
	traffic.Apply(t, b.master, benchPods)
	again := timed(t, b.master, "kube-bootstrap master --bundle "+hosts.Bundle)
	b.figures.add("master, second run", again.end.Sub(again.begin))
	hosts.ForPods(t, b.worker)
	join := clusters.JoinCommand(t, b.master)
	joined := timed(t, b.worker, join+" --progress json --bundle "+hosts.Bundle)
	b.figures.steps("worker", joined)
	b.figures.add("worker returned", joined.end.Sub(joined.begin))

	b.figures.seen(seen(t, b.master), made.begin, joined.begin)
	use()
	for i, m := range []hosts.Machine{b.worker, b.master} {
		gone := timed(t, m, "kube-bootstrap turndown --yes --keep-images")
		b.figures.add("turndown of the "+[]string{"worker", "master"}[i], gone.end.Sub(gone.begin))
	}
	b.figures.load()
}

// seen is what the watcher on a master saw, and when.
func seen(t *testing.T, master hosts.Machine) map[string]time.Time {
	t.Helper()
	all := map[string]time.Time{}
	wait.Until(t, time.Minute, "the first packet", func() error {
		out := master.Sh(t, "cat /run/bench")
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

func timed(t *testing.T, m hosts.Machine, command string) timing {
	t.Helper()
	out := m.Sh(t, "date +%s%N; { "+command+"; } >/dev/null 2>/run/stderr || { tail -n 20 /run/stderr; exit 1; }; "+
		"date +%s%N; cat /run/stderr")
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
      containers: [{name: probe, image: "` + hosts.ProbeImage + `", imagePullPolicy: Never, command: [/probe, serve]}]`
