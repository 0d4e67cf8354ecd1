package hosttest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Contract tests that a step keeps the promises of step.Step: Check is stable;
// Apply then Check is empty; Apply twice is harmless; cut short and run again
// it converges; Undo restores the world as it was printed before; Undo twice,
// or without Apply, does nothing. The step is left undone.
func Contract(t *testing.T, world func() string, s step.Step) {
	t.Helper()
	ctx := t.Context()
	before := world()
	first := check(t, ctx, s)
	if again := check(t, ctx, s); !slices.Equal(first, again) {
		t.Errorf("%s: two Checks differ: %q, then %q", s.Name, first, again)
	}
	same(t, s.Name+": Check", before, world)
	undo(t, ctx, s)
	same(t, s.Name+": Undo without Apply", before, world)
	if s.Apply == nil || len(first) == 0 {
		return
	}
	cutShort(ctx, s)
	for range 2 {
		if err := s.Apply(ctx); err != nil {
			t.Fatalf("%s: Apply: %v", s.Name, err)
		}
		if left := settle(t, ctx, s); len(left) > 0 {
			t.Errorf("%s: Check after Apply: %s", s.Name, left)
		}
	}
	for _, what := range []string{": Undo", ": a second Undo"} {
		undo(t, ctx, s)
		if s.Undo != nil {
			same(t, s.Name+what, before, world)
		}
	}
}

// settle is a Check after Apply. A step that waits may need more of them.
func settle(t *testing.T, ctx context.Context, s step.Step) step.Diff {
	t.Helper()
	left := check(t, ctx, s)
	for end := time.Now().Add(2 * time.Minute); s.Waits && len(left) > 0 &&
		time.Now().Before(end); left = check(t, ctx, s) {
		time.Sleep(100 * time.Millisecond)
	}
	return left
}

// cutShort stops an Apply in its course, as a signal would.
func cutShort(ctx context.Context, s step.Step) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	_ = s.Apply(ctx) // that it fails is the point
}

func check(t *testing.T, ctx context.Context, s step.Step) step.Diff {
	t.Helper()
	diff, err := s.Check(ctx)
	if err != nil {
		t.Fatalf("%s: Check: %v", s.Name, err)
	}
	return diff
}

func undo(t *testing.T, ctx context.Context, s step.Step) {
	t.Helper()
	if s.Undo == nil {
		return
	}
	if err := s.Undo(ctx); err != nil {
		t.Errorf("%s: Undo: %v", s.Name, err)
	}
}

// same compares again for some seconds, because the kubelet removes directories of ended pods late.
func same(t *testing.T, what, before string, world func() string) {
	t.Helper()
	diff := Diff(before, world())
	for end := time.Now().Add(15 * time.Second); len(diff) > 0 && time.Now().Before(end); diff = Diff(before, world()) {
		time.Sleep(time.Second)
	}
	if len(diff) > 0 {
		t.Errorf("%s left the host changed:\n%s", what, strings.Join(diff[:min(len(diff), 40)], "\n"))
	}
}
