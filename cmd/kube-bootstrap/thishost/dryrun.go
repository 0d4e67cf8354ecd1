package thishost

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

type change struct {
	Stage   int      `json:"stage"`
	Step    string   `json:"step"`
	Changes []string `json:"changes"`
	Error   string   `json:"error,omitempty"`
}

// PrintChanges checks every step of plans and lists what Apply would do.
func PrintChanges(ctx context.Context, con *console.Console, format output.Format, todo ...step.Plan) error {
	con.End()
	var found []step.Finding
	for _, one := range todo {
		found = append(found, (&step.Runner{}).Check(ctx, one)...)
	}
	changes := []change{}
	var errs []error
	for _, f := range found {
		switch {
		case step.IsUnanswered(f.Err):
			changes = append(changes, change{
				f.Stage, f.Step, []string{"not known before the run: " + f.Err.Error()}, "",
			})
		case f.Err != nil:
			changes = append(changes, change{f.Stage, f.Step, []string{}, f.Err.Error()})
			errs = append(errs, fmt.Errorf("%s: %w", f.Step, f.Err))
		case len(f.Diff) > 0:
			changes = append(changes, change{f.Stage, f.Step, f.Diff, ""})
		}
	}
	err := format.Print(con.Out, "Change", changes, func(w io.Writer) {
		for _, c := range changes {
			fmt.Fprintln(w, c.Step)
			for _, line := range c.Changes {
				fmt.Fprintln(w, "    "+line)
			}
		}
		if len(changes) == 0 {
			fmt.Fprintln(w, "nothing to do")
		}
	})
	return errors.Join(err, errors.Join(errs...))
}
