package console

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func twoHosts(context.Context) ([]string, error) { return []string{"host a", "host b"}, nil }

func TestConfirm(t *testing.T) {
	const question = "This removes for good:\n  host a\n  host b\nContinue? [y/N] "
	for answer, want := range map[string]error{
		"y\n": nil, "YES\n": nil, "n\n": errDeclined, "\n": errDeclined, "": errDeclined, "yesterday\n": errDeclined,
	} {
		var seen bytes.Buffer
		con := &Console{In: strings.NewReader(answer), Err: &seen, Asks: true}
		if err := con.Confirm(t.Context(), false, twoHosts); !errors.Is(err, want) || seen.String() != question {
			t.Errorf("%q: %v, want %v\n%s", answer, err, want, seen.String())
		}
	}
}

func TestNothingIsAsked(t *testing.T) {
	none := func(context.Context) ([]string, error) { return nil, nil }
	failed := func(context.Context) ([]string, error) { return nil, errDeclined }
	var seen bytes.Buffer
	con := &Console{Err: &seen} // without a terminal
	if err := con.Confirm(t.Context(), true, failed); err != nil {
		t.Errorf("with --yes: %v", err)
	}
	if err := con.Confirm(t.Context(), false, none); err != nil {
		t.Errorf("nothing is lost: %v", err)
	}
	problems := step.Problems(con.Confirm(t.Context(), false, twoHosts))
	if len(problems) != 1 || problems[0].Error() != "this removes host a, host b, and there is no terminal to "+
		"confirm that on; add --yes to remove that [confirmation]" {
		t.Errorf("without a terminal: %v", problems)
	}
	if seen.Len() > 0 {
		t.Errorf("asked %q", seen.String())
	}
}

// silent is a terminal on which nobody types.
type silent struct{}

func (silent) Read([]byte) (int, error) { select {} }

func TestAnInterruptEndsTheQuestion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	con := &Console{In: silent{}, Err: &bytes.Buffer{}, Asks: true}
	if err := con.Confirm(ctx, false, twoHosts); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
