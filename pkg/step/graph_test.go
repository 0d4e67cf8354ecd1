package step

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// diary records what steps do.
type diary struct {
	mu   sync.Mutex
	done []string
}

func (d *diary) note(what string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, what)
	return nil
}

// step returns a step that records its Apply and its Undo.
func (d *diary) step(id ID) Step {
	return Step{
		ID: id, Name: string(id), Waits: true,
		Check: func(context.Context) (Diff, error) { return Diff{"todo"}, nil },
		Apply: func(context.Context) error { return d.note(string(id)) },
		Undo:  func(context.Context) error { return d.note("undo " + string(id)) },
	}
}

func graphOf(t *testing.T, p Plan) *Graph {
	t.Helper()
	g, err := NewGraph(p)
	must.NoError(t, err)
	return g
}

func TestAStepNeedsTheStageBeforeAndWhatItNames(t *testing.T) {
	var d diary
	g := graphOf(t, Plan{{d.step("a"), d.step("d")}, {d.step("c").Needing("b"), d.step("b"), d.step("e")}})
	for _, before := range [][2]ID{{"a", "b"}, {"d", "b"}, {"a", "c"}, {"b", "c"}, {"d", "e"}} {
		if !g.AppliedBefore(before[0], before[1]) || !g.UndoneBefore(before[1], before[0]) {
			t.Errorf("%s does not come before %s, or is not undone after it", before[0], before[1])
		}
	}
	for _, beside := range [][2]ID{{"a", "d"}, {"b", "e"}, {"c", "e"}} {
		if g.AppliedBefore(beside[0], beside[1]) || g.AppliedBefore(beside[1], beside[0]) {
			t.Errorf("%s waits for %s, or the reverse", beside[0], beside[1])
		}
	}
}

func TestUndoneAfterReplacesTheUsualOrder(t *testing.T) {
	var d diary
	g := graphOf(t, Plan{{d.step("first")}, {d.step("a").UndoAfter("c")}, {d.step("b")}, {d.step("c")}})
	if !g.UndoneBefore("c", "a") || g.UndoneBefore("b", "a") || !g.UndoneBefore("b", "first") || !g.UndoneBefore("a", "first") {
		t.Error("a waits for b, or does not wait for c, or the first stage is not undone last")
	}
}

// TestAnExcludedStepIsWaitedThrough: c needs b, and b needs a. If b is excluded, c waits for a.
func TestAnExcludedStepIsWaitedThrough(t *testing.T) {
	var d diary
	plan := Plan{
		{d.step("first")},
		{d.step("a"), d.step("b").Needing("a").If(false), d.step("c").Needing("b"), d.step("x").UndoAfter("y")},
		{d.step("only").If(false)},
		{d.step("y").UndoAfter("z").If(false), d.step("z")},
	}
	g := graphOf(t, plan)
	if !g.AppliedBefore("a", "c") || !g.AppliedBefore("c", "z") || !g.UndoneBefore("c", "a") || !g.UndoneBefore("z", "x") {
		t.Error("an excluded step loses what it waits for")
	}
	var stages []int
	r := Runner{Emit: func(e Event) { stages = append(stages, e.Stage, e.Stages) }}
	must.NoError(t, r.Do(t.Context(), plan))
	must.NoError(t, r.Undo(t.Context(), plan))
	for _, what := range d.done {
		if slices.Contains([]string{"b", "only", "y"}, strings.TrimPrefix(what, "undo ")) {
			t.Errorf("the excluded step does: %s", what)
		}
	}
	if len(d.done) != 10 || slices.Max(stages) != 3 {
		t.Errorf("done: %q; stages with their number: %v", d.done, stages)
	}
	if found := r.Check(t.Context(), plan); len(found) != 5 || found[4].ID != "z" || found[4].Stage != 2 {
		t.Errorf("found %v", found)
	}
}

func TestAPlanThatCannotRunIsAnErrorBeforeAnythingRuns(t *testing.T) {
	for name, c := range map[string]struct {
		plan func(d *diary) Plan
		want string
	}{
		"unknown need": {func(d *diary) Plan { return Plan{{d.step("a").Needing("b")}} },
			"the step a names the step b, which the plan does not have"},
		"unknown undo": {func(d *diary) Plan { return Plan{{d.step("a")}, {d.step("c").UndoAfter("b")}} },
			"the step c names the step b, which the plan does not have"},
		"one ID twice": {func(d *diary) Plan { return Plan{{d.step("a")}, {d.step("a")}} }, "two steps have the ID a"},
		"an ID of an excluded step": {func(d *diary) Plan { return Plan{{d.step("a")}, {d.step("a").If(false)}} },
			"two steps have the ID a"},
		"no ID": {func(*diary) Plan { return Plan{{{Name: "x"}}} }, `the step "x" has no ID`},
		"circle": {func(d *diary) Plan {
			return Plan{{d.step("free")}, {d.step("a").Needing("b"), d.step("b").Needing("a")}}
		}, "these steps need one another: a, b"},
		"a need of a later stage": {func(d *diary) Plan { return Plan{{d.step("a").Needing("b")}, {d.step("b")}} },
			"these steps need one another: a, b"},
		"circle of Undo": {func(d *diary) Plan { return Plan{{d.step("first")}, {d.step("a")}, {d.step("b").UndoAfter("a")}} },
			"the Undo of these steps would wait for one another: first, a, b"},
		"Undo after the first stage": {func(d *diary) Plan { return Plan{{d.step("first")}, {d.step("a").UndoAfter("first")}} },
			"the Undo of these steps would wait for one another: first, a"},
	} {
		var d diary
		var r Runner
		plan := c.plan(&d)
		found := r.Check(t.Context(), plan)
		for _, err := range []error{r.Do(t.Context(), plan), r.Undo(t.Context(), plan), found[0].Err} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", name, err, c.want)
			}
		}
		if r.UpToDate(t.Context(), plan) || len(d.done) > 0 {
			t.Errorf("%s: up to date, or it runs %q", name, d.done)
		}
	}
}

func TestAFailureEndsWhatNeedsTheStep(t *testing.T) {
	var d diary
	broken := errors.New("broken")
	fails := d.step("fails")
	fails.Apply = func(context.Context) error { return broken }
	plan := Plan{{fails, d.step("b").Needing("fails"), d.step("c").Needing("b")}, {d.step("later")}}
	if err := (&Runner{}).Do(t.Context(), plan); !errors.Is(err, broken) || len(d.done) > 0 {
		t.Errorf("got %v after %q", err, d.done)
	}
}

func TestAFailedUndoKeepsTheFirstStage(t *testing.T) {
	var d diary
	broken := errors.New("broken")
	fails := d.step("fails")
	fails.Undo = func(context.Context) error { return broken }
	err := (&Runner{}).Undo(t.Context(), Plan{{d.step("first")}, {d.step("a")}, {fails}})
	if !errors.Is(err, broken) || !slices.Equal(d.done, []string{"undo a"}) {
		t.Errorf("got %v after %q", err, d.done)
	}
}

func TestIDsAreInKebabCase(t *testing.T) {
	for want, words := range map[ID][]string{
		"boot-worker-1":            {"boot", "worker-1"},
		"load-images-main-docker":  {"load", "images", "main Docker"},
		"put-etc-app.yaml":         {"put", "/etc/app.yaml"},
		"check-the-version-of-etc": {"check the version of etc"},
	} {
		if got := IDOf(words...); got != want {
			t.Errorf("%q: got %s, want %s", words, got, want)
		}
	}
}
