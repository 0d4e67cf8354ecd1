package cluster

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestAHostThatRefusesIsToldByItsProblems(t *testing.T) {
	line, err := json.Marshal(step.Event{Kind: step.Failed, Step: "preflight", Err: &step.Problem{Name: "swap", Text: "swap is on", Remedy: "turn it off"}})
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]bool{refuses: true, 1: false} {
		r := &relay{emit: func(step.Event) {}}
		if _, err := r.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		err := r.explain(&driver.ExitError{Node: "k-worker-1", Code: code})
		var refused *Refused
		if errors.As(err, &refused) != want || !strings.Contains(err.Error(), "k-worker-1: swap is on; turn it off [swap]") {
			t.Errorf("exit code %d: %v", code, err)
		}
		if want && refused.Problems[0].Name != "swap" {
			t.Errorf("problems %v", refused.Problems)
		}
	}
}

func TestAClusterThatDoesNotExist(t *testing.T) {
	f := &fleet{Options: Options{Name: "typo"}}
	if got, want := f.unknown([]string{"a", "b"}).Error(), "cluster typo does not exist; this engine has a, b [cluster-missing]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
