// Package faults breaks a cluster of two hosts in many ways, and measures what repairs it.
package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// fault is one row of the table of faults.
type fault struct {
	Name string
	on   string // master, worker or each: where do and fix run
	// What breaks: a script on those hosts, or a func where that is not enough.
	do    string
	cause func(*testing.T, *Bed) error
	// What takes a preparation of the fault back after its repair.
	end func(context.Context, *Bed) error
	// What repairs it: byAgent, byRerun, byBoot or byRemedy.
	repair string
	limit  time.Duration
	// What status reports until the repair. For byRemedy it is also what the
	// command that was refused says: it names the problem and its remedy.
	says string
	fix  string // that remedy, as a script on those hosts; the command is run after it
	// What else holds on those hosts after the repair, as a script.
	check string
	// Whether it takes seconds.
	quick bool
}

// The ways in which a fault is repaired, the easiest for the user first.
const (
	byAgent  = "agent"   // by itself, without a command
	byBoot   = "boot"    // by itself, while the hosts boot after the fault
	byRerun  = "rerun"   // by the command that made the host, run again
	byRemedy = "remedy"  // by the remedy that is named, and that command
	remade   = "nothing" // the cluster was made again
)

// outcome is what became of a fault.
type outcome struct {
	fault
	observed string
	took     time.Duration
	failed   bool
}

func (f fault) hosts(b *Bed) []hosts.Machine {
	switch f.on {
	case "master":
		return []hosts.Machine{b.master}
	case "worker":
		return []hosts.Machine{b.worker}
	}
	return []hosts.Machine{b.master, b.worker}
}

// script runs on every host of the fault.
func (f fault) script(ctx context.Context, b *Bed, script string) error {
	return b.each(func(m hosts.Machine) error {
		if out, err := m.Try(ctx, script); err != nil {
			return fmt.Errorf("%s: %w\n%s", m.Name, err, out)
		}
		return nil
	}, f.hosts(b)...)
}

// begin causes the fault. That hosts have seen many of them within a minute
// must not count: systemd gives up a unit that is started too often.
func (f fault) begin(t *testing.T, b *Bed) error {
	t.Helper()
	err := f.script(t.Context(), b, "systemctl reset-failed; "+f.do)
	if err == nil && f.cause != nil {
		err = f.cause(t, b)
	}
	if err == nil && f.repair == byBoot {
		err = b.power(t.Context(), "restart", f.hosts(b)...)
	}
	return err
}

// way is one attempt at a repair, and how long the cluster has afterwards.
type way struct {
	name string
	do   func(context.Context) error
	wait time.Duration
}

// busy is added to the limit of a repair. On a busy machine, the test needs this time to send
// packets over all paths and to read the status. A repair without an event is still too late,
// because the agent checks everything only every five minutes.
const busy = 15 * time.Second

// ways begins with what must repair the fault or comes before it. The rest
// tells how much is broken, and leaves the next fault a cluster that works.
func (f fault) ways(b *Bed, complain func(string, ...any)) []way {
	alone, later := way{name: f.repair, wait: f.limit + busy}, time.Minute
	if f.repair == byRerun || f.repair == byRemedy {
		alone = way{name: byAgent}
	}
	return []way{
		alone,
		{byRerun, func(ctx context.Context) error { return f.rerun(ctx, b, complain) }, f.limit},
		{byRemedy, func(ctx context.Context) error {
			if f.fix == "" {
				return fmt.Errorf("no remedy")
			}
			if err := f.script(ctx, b, f.fix); err != nil {
				return err
			}
			return f.script(ctx, b, b.command(later))
		}, f.limit},
		{"reboot", func(ctx context.Context) error { return b.power(ctx, "restart", b.master, b.worker) }, later},
		{remade, b.remake, 2 * later},
	}
}

// allowed reports whether a fault may be repaired in that way: an easier one is
// as good.
func (f fault) allowed(observed string) bool {
	switch f.repair {
	case byRemedy:
		return observed == byAgent || observed == byRerun || observed == byRemedy
	case byRerun:
		return observed == byAgent || observed == byRerun
	}
	return observed == f.repair
}

// command is the command that made the host, which it finds out by itself, as
// the records that tell may be damaged.
func (b *Bed) command(limit time.Duration) string {
	return fmt.Sprintf("verb=worker; [ \"$(hostname)\" = %s ] && verb=master\n"+
		"timeout -k 5 %.0f kube-bootstrap $verb 2>&1", b.master.Name, (wait.Patience * limit).Seconds())
}

// rerun runs that command on the hosts of the fault. Before it, status must
// name what is wrong, unless the agent has repaired that host meanwhile.
func (f fault) rerun(ctx context.Context, b *Bed, complain func(string, ...any)) error {
	return b.each(func(m hosts.Machine) error {
		out, err := m.Try(ctx, "timeout -k 5 50 kube-bootstrap status 2>&1")
		named := err != nil && strings.Contains(out, f.says)
		if !named && f.repair != byAgent && f.repair != byBoot && !f.repairedOn(ctx, m, err) {
			complain("%s: status does not say what is wrong (%q): %v\n%s", m.Name, f.says, err, clusters.Missing(out))
		}
		out, err = m.Try(ctx, b.command(f.limit))
		if err != nil && f.repair == byRemedy && !strings.Contains(out, f.says) {
			complain("%s: the refusal does not say %q:\n%s", m.Name, f.says, last(out, 5))
		}
		if err != nil {
			err = fmt.Errorf("%s: %w\n%s", m.Name, err, last(out, 5))
		}
		return err
	}, f.hosts(b)...)
}

// repairedOn reports whether status finds no fault on a host, and the host has none.
func (f fault) repairedOn(ctx context.Context, m hosts.Machine, status error) bool {
	if status != nil || f.check == "" {
		return false
	}
	_, err := m.Try(ctx, f.check)
	return err == nil
}

// last returns the last n lines.
func last(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Suffer causes a fault and waits for its repair.
func (b *Bed) Suffer(t *testing.T, f fault) outcome {
	t.Helper()
	ctx, o := t.Context(), outcome{fault: f, observed: remade}
	if err := f.begin(t, b); err != nil {
		t.Errorf("cause the fault: %v", err)
	}
	for _, w := range f.ways(b, t.Errorf) {
		began := time.Now()
		var err error
		if w.do != nil {
			err = w.do(ctx)
		}
		if err == nil {
			err = f.await(ctx, b, began, w.wait, func(err error) {
				t.Logf("%.1f s: %v", time.Since(began).Seconds(),
					err)
			})
		}
		if err == nil {
			o.observed, o.took = w.name, time.Since(began)
			break
		}
		t.Logf("%s: %v", w.name, err)
	}
	if f.end != nil && o.observed != remade {
		if err := f.end(ctx, b); err != nil {
			t.Errorf("take the preparation back: %v", err)
		}
	}
	if !f.allowed(o.observed) {
		t.Errorf("repaired by %s, want %s within %s", o.observed, f.repair, wait.Patience*(f.limit+busy))
	}
	o.failed = t.Failed()
	t.Logf("%s: %s after %.1f s", f.Name, o.observed, o.took.Seconds())
	return o
}

// await returns when the fault is repaired, or the last thing that is not. It calls
// changed for each new state of the cluster that is not whole.
func (f fault) await(ctx context.Context, b *Bed, began time.Time, limit time.Duration, changed func(error)) error {
	last := ""
	for {
		err := b.whole(ctx)
		if err == nil && f.check != "" {
			err = f.script(ctx, b, f.check)
		}
		if err == nil || time.Since(began) > wait.Patience*limit || ctx.Err() != nil {
			return err
		}
		if text := err.Error(); text != last {
			changed(err)
			last = text
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// await returns when everything works, or the last thing that does not.
func (b *Bed) await(ctx context.Context, limit time.Duration) error {
	return fault{}.await(ctx, b, time.Now(), limit, func(error) {})
}

// oneOfEachLayer are the quick faults that are tried in each run of the tests. TestFaults tries
// all.
var oneOfEachLayer = []string{"kubelet removed", "agent killed", "nft ruleset flushed", "flannel.1 deleted"}

// Quick tries faults that take seconds, on a cluster that has the probes.
func Quick(t *testing.T, master, worker hosts.Machine) {
	b := NewBed(t, master, worker, nil)
	all := Outcomes{}
	for _, f := range All() {
		if f.quick && slices.Contains(oneOfEachLayer, f.Name) {
			t.Run(f.Name, func(t *testing.T) { all = append(all, b.Suffer(t, f)) })
		}
	}
	t.Logf("what breaks a cluster, and what repairs it:\n%s", all)
}

// Outcomes are printed as a table.
type Outcomes []outcome

// String returns the table.
func (all Outcomes) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAULT\tON\tEXPECTED\tLIMIT\tOBSERVED\tTIME\tRESULT")
	for _, o := range all {
		result := "ok"
		if o.failed {
			result = "FAILED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.1f s\t%s\n", o.Name, o.on, o.repair, o.limit, o.observed,
			o.took.Seconds(), result)
	}
	_ = w.Flush()
	return text.String()
}
