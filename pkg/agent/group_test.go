package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAFailedRepairEndsTheRound: what comes after it may need it, and would only
// wait for it. The next round does not try the failed repair again at once.
func TestAFailedRepairEndsTheRound(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	first, second := fileDuty(files, "a", Link), fileDuty(files, "b", Link|Route)
	first.Step.Apply = func(context.Context) error { return errors.New("no luck") }
	list := []Reconciler{first, second}
	g := oneGroup(t, files, list)
	if g.round(t.Context(), list, Link|Route); files.Exists("/b") {
		t.Error("the round went on")
	}
	if again, _ := g.take(); again != Link|Route {
		t.Errorf("to look at again: %b", again)
	}
	if g.round(t.Context(), list, Link|Route); !files.Exists("/b") {
		t.Error("a repair that waits keeps the others from theirs")
	}
}

// TestAFailedRepairOfNewChangesWaitsToo: another host may change what it sees in every round,
// and must not keep the reconcilers after it from their repair.
func TestAFailedRepairOfNewChangesWaitsToo(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	first, second := fileDuty(files, "a", Link), fileDuty(files, "b", Link)
	looks := 0
	first.Step.Check = func(context.Context) (step.Diff, error) {
		looks++
		return step.Diff{fmt.Sprintf("write change %d", looks)}, nil
	}
	first.Step.Apply = func(context.Context) error { return errors.New("no luck") }
	list := []Reconciler{first, second}
	g := oneGroup(t, files, list)
	g.round(t.Context(), list, Link)
	if g.round(t.Context(), list, Link); !files.Exists("/b") {
		t.Error("a repair of new changes keeps the others from theirs")
	}
	if again, _ := g.take(); again != Link {
		t.Errorf("to look at again: %b", again)
	}
}

// oneGroup returns a group whose rounds a test runs itself.
func oneGroup(t *testing.T, files host.Files, list []Reconciler) *group {
	t.Helper()
	lock := filepath.Join(t.TempDir(), "lock")
	g := newGroup(&dispatcher{
		Repairer: Repairer{Reconcilers: func() (Groups, error) { return Groups{"": list}, nil }},
		in:       NewInbox(),
		recorder: &recorder{files: files, log: func(string) {}, logged: map[string]string{}},
		lock: &sharedLock{lock: func() (context.Context, func(), error) {
			return host.LockInBackground(t.Context(), lock)
		}},
	})
	t.Cleanup(g.queue.ShutDown)
	return g
}

// TestALookWithoutAnAnswerIsRepeated: a check that timed out is not a check that found nothing.
func TestALookWithoutAnAnswerIsRepeated(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	d, looks := fileDuty(files, "a", Link), 0
	check := d.Step.Check
	d.Step.Check = func(ctx context.Context) (step.Diff, error) {
		if looks++; looks < 3 {
			return nil, step.NoAnswer(errors.New("etcd does not answer"))
		}
		return check(ctx)
	}
	startGroups(t, files, Groups{"one": {d}})
	must.Until(t, "the repair", func() bool { return files.Exists("/a") })
}

// TestALongerLimitOfStepsIsForRepairsToo: it indicates a slow host.
func TestALongerLimitOfStepsIsForRepairsToo(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{20 * time.Second: 30 * time.Second, 5 * time.Minute: 30 * time.Second, 20 * time.Minute: 2 * time.Minute} {
		groups := Groups{"": {{}, {Limit: time.Hour}}}.Within(limit)
		if got := groups[""][0].repairLimit(); got != want {
			t.Errorf("%s: %s, want %s", limit, got, want)
		}
		if got := groups[""][1].repairLimit(); got != time.Hour {
			t.Errorf("%s: %s, want an hour", limit, got)
		}
	}
}

// TestGroupsRepairSideBySide: each repair waits for the other one to begin.
func TestGroupsRepairSideBySide(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	var ready sync.WaitGroup
	ready.Add(2)
	meet := func(name string) Reconciler {
		d := fileDuty(files, name, Link)
		write := d.Step.Apply
		d.Step.Apply = func(ctx context.Context) error {
			ready.Done()
			ready.Wait()
			return write(ctx)
		}
		return d
	}
	startGroups(t, files, Groups{"one": {meet("a")}, "other": {meet("b")}})
	must.Until(t, "both repairs", func() bool { return files.Exists("/a") && files.Exists("/b") })
	must.Until(t, "record both", func() bool { return len(Repairs(files)) == 2 })
}

// TestTheLockIsHeldTogether: a run of a user waits for all, and nobody joins
// them any more.
func TestTheLockIsHeldTogether(t *testing.T) {
	held, want := context.WithCancel(t.Context())
	released := false
	lock := sharedLock{lock: func() (context.Context, func(), error) {
		return held, func() { released = true }, nil
	}}
	one, leaveOne, err := lock.take(t.Context())
	must.NoError(t, err)
	other, leaveOther, err := lock.take(t.Context())
	must.NoError(t, err)
	want()
	<-one.Done()
	<-other.Done()
	if _, _, err := lock.take(t.Context()); !errors.Is(err, host.ErrLocked) {
		t.Errorf("joined while a run waits: %v", err)
	}
	if leaveOne(); released {
		t.Error("released before the last one left")
	}
	if leaveOther(); !released {
		t.Error("not released")
	}
}
