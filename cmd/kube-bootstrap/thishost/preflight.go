package thishost

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

type Checked struct {
	Check    string    `json:"check"`
	OK       bool      `json:"ok"`
	Note     string    `json:"note,omitempty"`
	Problems []problem `json:"problems"`
}

type problem struct {
	Name   string `json:"name,omitempty"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

func preflightCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "preflight [master|worker]",
		Short: "List everything that prevents master or worker, and change nothing",
		Long: `Look at this host and name everything that stands in the way of becoming a
master (or a worker, which is assumed when a master address is given). Nothing is
changed. Each problem has a name, which --ignore-preflight takes if a run can go
on without a solution. If images have to be pulled, it says how many bytes, and
from where.`,
		Example: `  kube-bootstrap preflight
  kube-bootstrap preflight worker --master-ip 192.168.1.10 -o json`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{config.RoleControlPlane, config.RoleWorker},
	}
	settings.AddFlags(c, config.Preflight)
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		role := strings.Join(args, "")
		cfg, origins, err := settings.Load(con.Env, c.Flags(), config.Preflight, role)
		if err != nil {
			return err
		}
		switch {
		case role != "":
		case cfg.MasterIP.IsValid() && !cfg.Join:
			role = config.RoleWorker
		default:
			role = config.RoleControlPlane
		}
		if err := AsRoot(); err != nil {
			return err
		}
		h, err := local.OpenWith(cfg, origins)
		if err != nil {
			return err
		}
		h = h.Resolve(step.WithReporter(c.Context(), sayOnce(con)), role)
		return printPreflight(c.Context(), con.Out, *format, preflight.Plan(h, role), h.Answers)
	}
	return c
}

// sayOnce returns a reporter that says what the command waits for.
func sayOnce(con *console.Console) func(message string, bytes, total int64) {
	var said string
	return func(message string, _, _ int64) {
		if message != said {
			said = message
			con.Say("waiting: " + message)
		}
	}
}

func printPreflight(
	ctx context.Context, out io.Writer, format output.Format, looks step.Plan, answers []local.Answer,
) error {
	var all []Checked
	var found []*step.Problem
	for _, f := range (&step.Runner{}).Check(ctx, looks) {
		found = append(found, step.Problems(f.Err)...)
		all = append(all, CheckedOf(f).noting(answers))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := format.Print(out, "Check", all, func(w io.Writer) {
		for _, c := range all {
			c.Print(w)
		}
	})
	if err != nil || !slices.ContainsFunc(all, func(c Checked) bool { return !c.OK }) {
		return err
	}
	return exit.Preflight(found)
}

// CheckedOf returns the result of a check.
func CheckedOf(f step.Finding) Checked {
	line := Checked{Check: f.Step, OK: f.Err == nil && len(f.Diff) == 0, Problems: []problem{}}
	for _, one := range step.Problems(f.Err) {
		line.Problems = append(line.Problems, problem{one.Name, one.Text, one.Remedy})
	}
	if len(line.Problems) == 0 && f.Err != nil {
		line.Problems = append(line.Problems, problem{Text: f.Err.Error()})
	}
	if len(f.Diff) > 0 {
		line.Problems = append(line.Problems, problem{Text: f.Diff.String()})
	}
	return line
}

// noting adds the note of the answer that was checked.
func (c Checked) noting(answers []local.Answer) Checked {
	for _, a := range answers {
		if a.Title == c.Check {
			c.Note = a.Note
		}
	}
	return c
}

// Print writes the check as a line of a table.
func (c Checked) Print(w io.Writer) {
	if c.OK {
		output.Row(w, "ok", strings.TrimSuffix(c.Check+": "+c.Note, ": "))
	}
	for _, one := range c.Problems {
		text := one.Text
		if one.Name != "" { // an error of the check itself has no name
			text = (&step.Problem{Name: one.Name, Text: one.Text, Remedy: one.Remedy}).Error()
		}
		output.Row(w, "PROBLEM", fmt.Sprintf("%s: %s", c.Check, text))
	}
}
