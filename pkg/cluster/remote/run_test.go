package remote

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestAHostThatRefusesIsToldByItsProblems(t *testing.T) {
	line, err := json.Marshal(step.Event{
		Kind: step.Failed, Step: "preflight",
		Err: &step.Problem{Name: "swap", Text: "swap is on", Remedy: "turn it off"},
	})
	must.NoError(t, err)
	for code, want := range map[int]bool{refuses: true, 1: false} {
		r := newRelay(func(step.Event) {})
		if _, err := r.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		err := r.explain(&access.ExitError{Node: "k-worker-1", Code: code})
		var refused *Refused
		if errors.As(err, &refused) != want ||
			!strings.Contains(err.Error(), "k-worker-1: swap is on; turn it off [swap]") {
			t.Errorf("exit code %d: %v", code, err)
		}
		if want && refused.Problems[0].Name != "swap" {
			t.Errorf("problems %v", refused.Problems)
		}
	}
}

func TestRelay(t *testing.T) {
	var got []step.Event
	r := newRelay(func(e step.Event) { got = append(got, e) })
	// Pieces as a stream cuts them, a line that is no event, and no last newline.
	for _, piece := range []string{
		`{"at":"2026-01-02T03:04:05Z","stage":1,"step":"start etcd","ki`,
		`nd":"progress","message":"load","bytes":5,"total":10}` + "\nwarning: old kernel\n",
		`{"stage":2,"step":"start flannel","kind":"failed","error":"start flannel: no lease"}` + "\n",
		`{"at":"2026-01-02T03:04:06Z","kind":"result","code":1,"error":"start flannel: no lease"}`,
	} {
		if _, err := r.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	r.Flush()
	if len(got) != 2 || got[0].Step != "start etcd" || got[0].Bytes != 5 || got[0].Total != 10 || got[0].At.IsZero() {
		t.Fatalf("events %+v", got)
	}
	if got[1].Kind != step.Failed || got[1].Err == nil || got[1].Err.Error() != "start flannel: no lease" {
		t.Errorf("failure %+v", got[1])
	}
	err := r.explain(&access.ExitError{Node: "kube-master-1", Code: 1})
	if !strings.HasPrefix(err.Error(), "kube-master-1: ") || !strings.Contains(err.Error(), "no lease") {
		t.Errorf("explained as %q", err)
	}
}

// TestAnEndlessLineIsSplit: otherwise it would fill the memory of this machine.
func TestAnEndlessLineIsSplit(t *testing.T) {
	longest, all := 0, 0
	l := Lines{Do: func(line []byte) { longest, all = max(longest, len(line)), all+len(line) }}
	part := make([]byte, 64<<10)
	for range 100 {
		if _, err := l.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if kept := len(l.rest); longest == 0 || longest > longestLine+len(part) || all+kept != 100*len(part) {
		t.Errorf("lines of %d bytes, %d bytes of all, %d are kept", longest, all, kept)
	}
}

// TestANodeThatDoesNotAnswerEnds: the report of the others is shown.
func TestANodeThatDoesNotAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := answered(t.Context(), func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		if err == nil || !strings.Contains(err.Error(), "no report within") {
			t.Errorf("got %v", err)
		}
	})
	if out, err := answered(t.Context(),
		func(context.Context) (string, error) { return "report", nil }); out != "report" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
}
