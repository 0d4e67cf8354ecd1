//go:build e2e

package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figures are durations by what was measured, one of each run.
type figures struct {
	whole, parts map[string][]time.Duration
	loads        *[]string
}

func newFigures() figures {
	return figures{map[string][]time.Duration{}, map[string][]time.Duration{}, &[]string{}}
}

func (f figures) add(what string, took time.Duration) { f.whole[what] = append(f.whole[what], took) }

// seen notes what a watcher saw, from when the command was given.
func (f figures) seen(all map[string]time.Time, master, worker time.Time) {
	for what, at := range all {
		begin := master
		if strings.Contains(what, "worker") {
			begin = worker
		}
		f.add(what, at.Sub(begin))
	}
}

// load notes how busy the machine was, without which no time says anything.
func (f figures) load() {
	data, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		*f.loads = append(*f.loads, strings.Fields(string(data))[0])
	}
}

// steps notes how long each step took, and how long none was at work: before
// the first one, and while stages were checked.
func (f figures) steps(verb string, of timing) {
	type key struct {
		stage int
		step  string
	}
	started, working := map[key]time.Time{}, 0
	idle, first := of.begin, true
	var looking time.Duration
	add := func(what string, took time.Duration) {
		f.parts[verb+": "+what] = append(f.parts[verb+": "+what], took)
	}
	for line := range strings.Lines(of.stderr) {
		var e struct {
			At         time.Time
			Stage      int
			Step, Kind string
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		k := key{e.Stage, e.Step}
		begin, open := started[k]
		switch {
		case e.Kind == "started":
			started[k] = e.At
			if working++; working == 1 && first {
				add("(before the first step)", e.At.Sub(idle))
				first = false
			} else if working == 1 {
				looking += e.At.Sub(idle)
			}
		case e.Kind == "done" && open:
			add(e.Step, e.At.Sub(begin))
			working, idle = working-1, e.At
		}
	}
	add("(looking, between the steps)", looking+of.end.Sub(idle))
}

// table shows medians: the promises in the order of time beside what the peer
// took, then the steps, longest first.
func (f figures) table(peer figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d runs on %d CPUs; load after each: %s\n\n", benchRuns, runtime.NumCPU(),
		strings.Join(*f.loads, " "))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "median s\tmin\tmax\tkubeadm\tratio\t  what")
	for _, what := range []string{
		"API answering", "node Ready", "DNS Ready", "master returned", "master, second run",
		"worker Ready", "worker returned", "first packet from the worker", "turndown of the worker",
		"turndown of the master",
	} {
		row(table, what, f.whole[what], peer.whole[what])
	}
	fmt.Fprintln(table, "\t\t\t\t\t  where the time went; the steps of a stage overlap")
	parts := slices.SortedFunc(maps.Keys(f.parts), func(x, y string) int {
		verb := strings.Compare(x[:6], y[:6])
		return max(min(verb, 1), -1)*2 + int(max(min(median(f.parts[y])-median(f.parts[x]), 1), -1))
	})
	for _, what := range parts {
		row(table, what, f.parts[what], nil)
	}
	_ = table.Flush()
	return b.String()
}

func row(table *tabwriter.Writer, what string, took, peers []time.Duration) {
	if len(took) == 0 {
		return
	}
	beside := "\t"
	if len(peers) > 0 {
		beside = fmt.Sprintf("%.2f\t%.2f", median(peers).Seconds(), median(took).Seconds()/median(peers).Seconds())
	}
	fmt.Fprintf(table, "%.2f\t%.2f\t%.2f\t%s\t  %s\n", median(took).Seconds(), slices.Min(took).Seconds(),
		slices.Max(took).Seconds(), beside, what)
}

func median(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}
