package agent

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// fileDuty is a reconciler that a file of this name exists.
func fileDuty(files host.Files, name string, on Events) Reconciler {
	tree := []host.File{{Path: "/" + name, Data: []byte(name)}}
	return Reconciler{On: on, Step: step.Step{
		ID: step.IDOf("write", name), Name: "write " + name,
		Check: func(context.Context) (step.Diff, error) { return files.Missing(tree) },
		Apply: func(context.Context) error { return files.Put(tree) },
	}}
}

// journal is what a Repairer has logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) log(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.WriteString(text + "\n")
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), text)
}

// start runs a Repairer with these reconcilers and returns its inbox, its log and
// the path of its lock. No engine is up.
func start(t *testing.T, files host.Files, reconcilers ...Reconciler) (*Inbox, *journal, string) {
	t.Helper()
	return startGroups(t, files, Groups{"": reconcilers})
}

func startGroups(t *testing.T, files host.Files, groups Groups) (*Inbox, *journal, string) {
	t.Helper()
	lock, log, in := filepath.Join(t.TempDir(), "lock"), &journal{}, NewInbox()
	r := Repairer{
		Files: files, Log: log.log,
		Reconcilers: func() (Groups, error) { return groups, nil },
		TakeLock: func(ctx context.Context) (context.Context, func(), error) {
			return host.LockInBackground(ctx, lock)
		},
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, in) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return in, log, lock
}

func TestRepairAfterAnEvent(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	in, log, _ := start(t, files, fileDuty(files, "a", Link), fileDuty(files, "b", Route))
	must.Until(t, "repair everything at the start", func() bool { return log.has("repaired: write a") && log.has("repaired: write b") })
	must.NoError(t, files.Remove("/a"))
	in.Put(Link)
	must.Until(t, "repair after an event", func() bool { return files.Exists("/a") })
	must.Until(t, "record the repair", func() bool { return len(Repairs(files)) == 3 })
	if last := Repairs(files)[2]; last.Step != "write a" || len(last.Changes) != 1 || last.Error != "" {
		t.Errorf("recorded %+v", last)
	}
}

func TestRepairLeavesDutiesOfOtherEvents(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	for _, name := range []string{"/a", "/b"} {
		must.NoError(t, files.Write(name, []byte(name[1:]), 0o600))
	}
	in, log, _ := start(t, files, fileDuty(files, "a", Link), fileDuty(files, "b", Route), fileDuty(files, "last", Forwarding))
	must.Until(t, "look at everything at the start", func() bool { return log.has("repaired: write last") })
	must.NoError(t, errors.Join(files.Remove("/a"), files.Remove("/b")))
	in.Put(Route)
	must.Until(t, "repair after an event", func() bool { return files.Exists("/b") })
	if files.Exists("/a") {
		t.Error("repaired what the event does not concern")
	}
}

func TestRepairWaitsForTheEngine(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	in, log, _ := start(t, files, fileDuty(files, "engine", MainDocker|Link), fileDuty(files, "other", Link))
	must.Until(t, "repair what needs no engine", func() bool { return log.has("repaired: write other") })
	if files.Exists("/engine") {
		t.Error("repaired by an engine that is down")
	}
	in.Up(MainDocker, true)
	must.Until(t, "repair once the engine is up", func() bool { return files.Exists("/engine") })
}

func TestRepairWaitsForTheLock(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	in, log, lock := start(t, files, fileDuty(files, "a", Link), fileDuty(files, "seen", Route))
	must.Until(t, "repair at the start", func() bool { return log.has("repaired: write seen") })
	var release func()
	must.Until(t, "take the lock, which a repair releases after its log", func() (ok bool) {
		var err error
		release, err = host.Lock(t.Context(), lock)
		return err == nil
	})
	must.NoError(t, files.Remove("/a"))
	in.Put(Link)
	time.Sleep(3 * settle) // it must do nothing
	if files.Exists("/a") {
		t.Error("repaired while another run held the lock")
	}
	release()
	must.Until(t, "repair once the lock is free", func() bool { return files.Exists("/a") })
}

func TestFailedRepairIsRecordedAndTriedAgain(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	failing := fileDuty(files, "a", Link)
	good, tries := failing.Step.Apply, 0
	failing.Step.Apply = func(ctx context.Context) error {
		if tries++; tries == 1 {
			return errors.New("no luck")
		}
		return good(ctx)
	}
	_, log, _ := start(t, files, failing)
	must.Until(t, "try again", func() bool { return files.Exists("/a") })
	if !log.has("no luck") {
		t.Error("the failure was not logged")
	}
	must.Until(t, "record both", func() bool { return len(Repairs(files)) == 2 })
	if first := Repairs(files)[0]; !strings.Contains(first.Error, "no luck") {
		t.Errorf("recorded %+v", first)
	}
}

// A user's run must not wait for as long as a repair may take.
func TestRepairLetsARunGoFirst(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	slow := fileDuty(files, "a", Link)
	quick, tries, begun := slow.Step.Apply, 0, make(chan struct{})
	slow.Step.Apply = func(ctx context.Context) error {
		if tries++; tries > 1 {
			return quick(ctx)
		}
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	_, _, lock := start(t, files, slow)
	<-begun // the repair holds the lock: the file of a lock exists before that
	release, err := host.Lock(t.Context(), lock)
	if err != nil {
		t.Fatalf("the repair did not let go: %v", err)
	}
	release()
	must.Until(t, "repair after the run", func() bool { return files.Exists("/a") })
	must.Until(t, "record the repair", func() bool { return len(Repairs(files)) > 0 })
	if all := Repairs(files); len(all) != 1 || all[0].Error != "" {
		t.Errorf("an interrupted repair is recorded: %+v", all)
	}
}

// A stop of the host ends engines and what runs in them at the same time.
func TestRepairThatFailsBecauseTheEngineEndedIsNone(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	var in *Inbox
	ready := make(chan bool)
	failing := fileDuty(files, "a", MainDocker)
	failing.Step.Apply = func(context.Context) error {
		<-ready
		in.Up(MainDocker, false)
		return errors.New("connection refused")
	}
	in, log, _ := start(t, files, failing, fileDuty(files, "other", Link))
	in.Up(MainDocker, true)
	close(ready)
	must.Until(t, "repair the other one", func() bool { return log.has("repaired: write other") })
	for _, r := range Repairs(files) {
		if r.Error != "" {
			t.Errorf("recorded %+v", r)
		}
	}
}

// TestPausesBetweenRepairsGrow: a repair that is repeated does not help.
func TestPausesBetweenRepairsGrow(t *testing.T) {
	d := Reconciler{Step: step.Step{Name: "write a"}, On: Link}
	again, other := step.Diff{"write a"}, step.Diff{"write b"}
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(&dispatcher{})
		defer g.queue.ShutDown()
		repeat := func(changes step.Diff) time.Duration { // as soon as it may
			time.Sleep(g.backoffs["write a"].wait(changes))
			g.recheckLater(d, changes)
			return g.backoffs["write a"].wait(changes)
		}
		for i, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
			if pause := repeat(again); pause != want*time.Second {
				t.Errorf("pause %d is %v", i+1, pause)
			}
		}
		if wait := g.backoffs["write a"].wait(other); wait > 0 {
			t.Errorf("another fault waits %v", wait)
		}
		if pause := repeat(other); pause != firstAgain {
			t.Errorf("after another fault %v", pause)
		}
		repeat(other)
		time.Sleep(g.backoffs["write a"].wait(other) + steady + time.Second)
		if pause := repeat(other); pause != firstAgain {
			t.Errorf("after it held for a while: %v", pause)
		}
	})
}

// TestOneRoundForManyEvents: a fault causes several events, and repairs plan further looks.
func TestOneRoundForManyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(&dispatcher{})
		defer g.queue.ShutDown()
		for range 3 {
			g.queue.Add(Link)
			g.queue.Add(Link | Route)
			g.queue.AddAfter(Firewall, time.Minute)
		}
		begun := time.Now()
		for _, want := range []struct {
			events Events
			after  time.Duration
		}{{Link | Route, 0}, {Firewall, time.Minute}} {
			if events, ended := g.take(); events != want.events || ended || time.Since(begun) != want.after {
				t.Errorf("after %v: %b, ended %t, want %b after %v", time.Since(begun), events, ended, want.events, want.after)
			}
		}
	})
}

// TestAGroupEndsWithTheAgent: also while it waits for events and has planned looks.
func TestAGroupEndsWithTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		g := newGroup(&dispatcher{in: NewInbox()})
		g.list.Store(&[]Reconciler{})
		g.queue.AddAfter(Link, time.Hour)
		ended := make(chan struct{})
		go func() {
			g.run(ctx)
			close(ended)
		}()
		synctest.Wait()
		stop()
		<-ended
	})
}

func TestRecordOfRepairsIsBounded(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	for i := range 3 * maxRepairs {
		must.NoError(t, note(files, Repair{Seconds: float64(i)}))
	}
	if all := Repairs(files); len(all) != maxRepairs || all[maxRepairs-1].Seconds != 3*maxRepairs-1 {
		t.Errorf("%d, the last %v", len(all), all[len(all)-1])
	}
	must.NoError(t, files.Write(repairs.Path, []byte("{garbage"), 0o600))
	if err := note(files, Repair{Step: "x"}); err != nil || len(Repairs(files)) != 1 {
		t.Errorf("a damaged record: %v, %v", err, Repairs(files))
	}
}
