package thishost

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
)

func TestWatchPrintsEachChangeOnce(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	roles := []string{"worker", "worker", "master", "master", "worker"}
	var out bytes.Buffer
	last, err := statusWatch{format: "json", out: &out, look: func(ctx context.Context) (Status, error) {
		if len(roles) == 0 {
			end()
			return Status{}, ctx.Err()
		}
		role := roles[0]
		roles = roles[1:]
		return Status{Role: role, UpToDate: true}, nil
	}}.run(ctx)
	if err != nil || last.Role != "worker" || !last.UpToDate {
		t.Errorf("ended with %+v, %v", last, err)
	}
	if got := strings.Count(out.String(), `"role": "worker"`); got != 2 || strings.Count(out.String(), `"role"`) != 3 {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestWatchSeparatesDocuments(t *testing.T) {
	for name, c := range map[string]struct {
		watch statusWatch
		want  string
	}{
		"terminal": {statusWatch{format: output.Table, terminal: true}, "\x1b[H\x1b[2Jx\n"},
		"yaml":     {statusWatch{format: "yaml"}, "---\nx\n"},
		"json":     {statusWatch{format: "json"}, "x\n"},
	} {
		var out bytes.Buffer
		c.watch.out = &out
		if err := c.watch.print([]byte("x\n")); err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}

func TestWatchEndsWithTheErrorOfALook(t *testing.T) {
	broken := errors.New("broken")
	_, err := statusWatch{format: "json", out: &bytes.Buffer{},
		look: func(context.Context) (Status, error) { return Status{}, broken }}.run(t.Context())
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = statusWatch{format: "json", out: &bytes.Buffer{},
		look: func(ctx context.Context) (Status, error) { return Status{}, ctx.Err() }}.run(ended)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended before the first look: %v", err)
	}
}
