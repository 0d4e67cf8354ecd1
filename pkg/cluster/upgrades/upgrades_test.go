package upgrades

import (
	"context"
	"errors"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// ending is a node on which each command ends with the same error.
type ending struct{ err error }

func (e ending) Exec(context.Context, host.Command) error { return e.err }

// TestANodeThatDoesNotAnswerIsNotComplete: otherwise an upgrade would be complete without this node.
func TestANodeThatDoesNotAnswerIsNotComplete(t *testing.T) {
	lost := errors.New("connection lost")
	for what, c := range map[string]struct {
		err        error
		unfinished bool
		fails      bool
	}{
		"a record":    {nil, true, false},
		"no record":   {&access.ExitError{Node: "a", Code: 1, Err: lost}, false, false},
		"no program":  {&access.ExitError{Node: "a", Code: 127, Err: lost}, false, true},
		"a lost link": {lost, false, true},
	} {
		unfinished, err := exists(t.Context(), ending{c.err}, "/record")
		if unfinished != c.unfinished || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", what, unfinished, err)
		}
	}
}

// TestAWorkloadThatLackedPodsBeforeDoesNotDelayTheNextWorkers: it may never have been Ready.
func TestAWorkloadThatLackedPodsBeforeDoesNotDelayTheNextWorkers(t *testing.T) {
	before := map[string]bool{"Deployment a/broken": true}
	if err := newlyShort([]string{"Deployment a/broken"}, before); err != nil {
		t.Error(err)
	}
	if err := newlyShort([]string{"Deployment a/broken", "Deployment a/moved"}, before); err == nil {
		t.Error("a workload whose pods left is not waited for")
	}
}
