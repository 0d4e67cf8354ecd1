package etcd

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestWhoIsForgotten(t *testing.T) {
	all := []MemberStatus{
		{Name: "one", IP: "10.0.0.1", Healthy: true},
		{Name: "lives", IP: "10.0.0.2", Healthy: true},
		{Name: "dead", IP: "10.0.0.3"},
		{IP: "10.0.0.4", Learner: true}, // has not started yet, so nobody knows its name
	}
	listed := []ControlPlaneEntry{{Name: "begun", IP: "10.0.0.4", Joining: true},
		{Name: "announced", IP: "10.0.0.5", Joining: true}}
	for name, want := range map[string]string{
		"dead": "10.0.0.3", "begun": "10.0.0.4", "announced": "10.0.0.5", "nobody": "",
	} {
		if ip, err := forgettable("one", name, all, listed); ip != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, ip, err, want)
		}
	}
	for _, name := range []string{"one", "lives"} {
		_, err := forgettable("one", name, all, listed)
		if found := step.Problems(err); len(found) != 1 || found[0].Name != "control-plane-alive" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestForgetAdvisesWhatItHas: only turndown has --force.
func TestForgetAdvisesWhatItHas(t *testing.T) {
	for _, err := range []error{rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, errors.New("timeout")} {
		for _, c := range []struct {
			err    error
			forces bool
		}{{cannotLeave(err), true}, {cannotForget("three", err), false}} {
			found := step.Problems(c.err)
			if len(found) != 1 || strings.Contains(found[0].Remedy, "--force") != c.forces || !c.forces &&
				!strings.Contains(found[0].Text, "three") {
				t.Errorf("%v: %v", err, c.err)
			}
		}
	}
}
