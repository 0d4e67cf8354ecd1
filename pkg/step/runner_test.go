package step

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// cell is a step over one bool: the smallest world there is.
func cell(name string, value *atomic.Bool) Step {
	return Step{
		ID: ID(name), Name: name,
		Check: func(context.Context) (Diff, error) {
			if value.Load() {
				return nil, nil
			}
			return Diff{"set " + name}, nil
		},
		Apply: func(context.Context) error { value.Store(true); return nil },
		Undo:  func(context.Context) error { value.Store(false); return nil },
	}
}

func TestDoThenLookThenUndo(t *testing.T) {
	var a, b atomic.Bool
	plan := Plan{{cell("a", &a)}, {cell("b", &b)}}
	var r Runner
	must.NoError(t, r.Do(t.Context(), plan))
	for _, f := range r.Check(t.Context(), plan) {
		if len(f.Diff) > 0 || f.Err != nil {
			t.Errorf("%s: %v %v", f.Step, f.Diff, f.Err)
		}
	}
	if err := r.Undo(t.Context(), plan); err != nil || a.Load() || b.Load() {
		t.Errorf("undo: %v, left a=%v b=%v", err, a.Load(), b.Load())
	}
}

// TestUpToDate expects that a Check with a Diff cancels a slow Check.
func TestUpToDate(t *testing.T) {
	var a, b atomic.Bool
	slow := Step{ID: "slow", Name: "slow", Check: func(ctx context.Context) (Diff, error) {
		if !a.Load() {
			<-ctx.Done()
		}
		return nil, nil
	}}
	var events []Event
	r := Runner{Emit: func(e Event) { events = append(events, e) }}
	plan := Plan{{cell("a", &a), slow}, {cell("b", &b)}}
	if r.UpToDate(t.Context(), plan) || a.Load() || b.Load() || len(events) > 0 {
		t.Errorf("up to date on a new host: a=%v b=%v %v", a.Load(), b.Load(), events)
	}
	must.NoError(t, r.Do(t.Context(), Plan{{cell("a", &a)}, {cell("b", &b)}}))
	events = nil
	if !r.UpToDate(t.Context(), plan) || len(events) != 3 || events[2].Kind != UpToDate || events[2].Stage != 1 {
		t.Errorf("not up to date after a run: %v", events)
	}
}

func TestLookChangesNothing(t *testing.T) {
	var a atomic.Bool
	var r Runner
	if found := r.Check(t.Context(), Plan{{cell("a", &a)}}); len(found[0].Diff) != 1 || a.Load() {
		t.Errorf("found %v, a=%v", found, a.Load())
	}
}

func TestAllProblemsOfARowAreTold(t *testing.T) {
	problem := func(name string) Step {
		return Step{ID: ID(name), Name: name, Check: func(context.Context) (Diff, error) {
			return nil, &Problem{Name: name, Text: name + " is bad"}
		}}
	}
	var touched atomic.Bool
	var r Runner
	err := r.Do(t.Context(), Plan{{problem("x"), problem("y"), cell("touch", &touched)}})
	if got := Problems(err); len(got) != 2 || touched.Load() {
		t.Errorf("problems %v, touched %v", got, touched.Load())
	}
}

func TestAStepThatDoesNotConvergeFails(t *testing.T) {
	s := Step{
		ID: "stubborn", Name: "stubborn",
		Check: func(context.Context) (Diff, error) { return Diff{"still"}, nil },
		Apply: func(context.Context) error { return nil },
	}
	var r Runner
	err := r.Do(t.Context(), Plan{{s}})
	if err == nil || !strings.Contains(err.Error(), "stubborn: still to do") {
		t.Errorf("got %v", err)
	}
}

func TestAFailureStopsItsNeighbours(t *testing.T) {
	boom := errors.New("boom")
	fails := Step{ID: "fails", Name: "fails", Check: func(context.Context) (Diff, error) { return Diff{"x"}, nil },
		Apply: func(context.Context) error { return boom }}
	waits := Wait("waits", "waits", func(context.Context) error { return errors.New("never") }, nil)
	var r Runner
	if err := r.Do(t.Context(), Plan{{waits, fails}}); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

func TestWaitTellsTheLastAnswer(t *testing.T) {
	err := Until(WithLimit(t.Context(), 20*time.Millisecond), func(context.Context) error { return errors.New("not ready") },
		func() string { return "tail of the log" })
	if err == nil || !strings.Contains(err.Error(), "not within 20ms: not ready") || !strings.Contains(err.Error(), "tail of the log") {
		t.Errorf("got %v", err)
	}
}

// TestTheFirstFailureIsTold: another step of the stage, which the failure stops, may
// return an error that does not say so.
func TestTheFirstFailureIsTold(t *testing.T) {
	always := func(context.Context) (Diff, error) { return Diff{"todo"}, nil }
	plan := Plan{{
		{ID: "stopped", Name: "stopped", Check: always, Apply: func(ctx context.Context) error { <-ctx.Done(); return errors.New("closed connection") }},
		{ID: "fails", Name: "fails", Check: always, Apply: func(context.Context) error { return errors.New("no disk") }},
	}}
	if err := (&Runner{}).Do(t.Context(), plan); err == nil || err.Error() != "fails: no disk" {
		t.Errorf("got %v", err)
	}
}

func TestUndoGoesOnAfterAFailure(t *testing.T) {
	var a atomic.Bool
	a.Store(true)
	fails := Step{ID: "fails", Name: "fails", Undo: func(context.Context) error { return errors.New("stuck") }}
	var r Runner
	var memory atomic.Bool
	memory.Store(true)
	plan := Plan{{cell("remember", &memory)}, {cell("a", &a)}, {fails}}
	if err := r.Undo(t.Context(), plan); err == nil || a.Load() || !memory.Load() {
		t.Errorf("err %v, a %v, memory %v", err, a.Load(), memory.Load())
	}
}

func TestUndoneAfterWaitsForTheNamedStepsOnly(t *testing.T) {
	var mu sync.Mutex
	var order []string
	began := make(chan struct{})
	noted := func(name string, waits <-chan struct{}) Step {
		return Step{ID: ID(name), Name: name, Undo: func(context.Context) error {
			if waits != nil {
				<-waits
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		}}
	}
	last, early := noted("last", nil), noted("early", nil)
	undo := early.Undo
	early.Undo = func(ctx context.Context) error { defer close(began); return undo(ctx) }
	// slow ends only after early, which is in an earlier stage.
	early = early.UndoAfter("last")
	plan := Plan{{noted("memory", nil)}, {early}, {noted("usual", nil)}, {noted("slow", began)}, {last}}
	must.NoError(t, (&Runner{}).Undo(t.Context(), plan))
	if want := []string{"last", "early", "slow", "usual", "memory"}; !slices.Equal(order, want) {
		t.Errorf("undone in the order %q, want %q", order, want)
	}
}

// A plan whose steps would wait for one another is an error and undoes nothing.
func TestUndoneAfterEachOther(t *testing.T) {
	var early, late, memory atomic.Bool
	late.Store(true)
	plan := Plan{{cell("memory", &memory)}, {cell("early", &early)}, {cell("late", &late).UndoAfter("early")}}
	ended := make(chan error, 1)
	go func() { ended <- (&Runner{}).Undo(t.Context(), plan) }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "early, late") || !late.Load() {
			t.Errorf("got %v; late is undone: %t", err, !late.Load())
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it waits forever")
	}
}

func TestUndoTellsWhatItLeaves(t *testing.T) {
	var events []Event
	r := Runner{Emit: func(e Event) { events = append(events, e) }}
	leaves := Step{ID: "load", Name: "load", Undo: func(ctx context.Context) error { Leave(ctx, "image x: container y uses it"); return nil }}
	must.NoError(t, r.Undo(t.Context(), Plan{{leaves}}))
	if left := r.Left(); len(left) != 1 || left[0] != "image x: container y uses it" || len(events) != 3 || events[1].Kind != Left {
		t.Errorf("left %q, events %v", left, events)
	}
}

func TestWaitTellsTheLastAnswerNotTheEndOfTime(t *testing.T) {
	answers := 0
	err := Until(WithLimit(t.Context(), 20*time.Millisecond), func(ctx context.Context) error {
		if answers++; answers == 1 {
			return errors.New("not signed")
		}
		<-ctx.Done()
		return ctx.Err()
	}, nil)
	if err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("got %v", err)
	}
}

// TestNeeds: within a stage, a step begins after the steps that it names, and is undone
// before them. It does not begin if one of them fails.
func TestNeeds(t *testing.T) {
	var mu sync.Mutex
	var order []string
	note := func(what string) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
		return nil
	}
	noted := func(name string) Step {
		return Step{
			ID: ID(name), Name: name, Waits: true,
			Check: func(context.Context) (Diff, error) { return Diff{name}, nil },
			Apply: func(context.Context) error { return note(name) },
			Undo:  func(context.Context) error { return note("undo " + name) },
		}
	}
	start, load := noted("start"), noted("load")
	plan := Plan{{noted("memory")}, {noted("use").Needing("load"), load.Needing("start"), start}}
	must.NoError(t, (&Runner{}).Do(t.Context(), plan))
	must.NoError(t, (&Runner{}).Undo(t.Context(), plan))
	if want := []string{"memory", "start", "load", "use", "undo use", "undo load", "undo start", "undo memory"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
	order = nil
	broken := errors.New("broken")
	start.Apply = func(context.Context) error { return broken }
	if err := (&Runner{}).Do(t.Context(), Plan{{load.Needing("start"), start}}); !errors.Is(err, broken) || len(order) > 0 {
		t.Errorf("got %v after %q", err, order)
	}
}
