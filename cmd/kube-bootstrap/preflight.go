package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// checked is one line of a preflight.
type checked struct {
	Check    string    `json:"check"`
	OK       bool      `json:"ok"`
	Problems []problem `json:"problems"`
}

type problem struct {
	Name   string `json:"name,omitempty"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

func (p *program) preflightCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "preflight [master|worker]",
		Short: "Name everything that stands in the way of master or worker",
		Long: `Look at this host and name everything that stands in the way of becoming a
master (or a worker, which is assumed when a master address is given). Nothing is
changed. Each problem has a name that --ignore-preflight takes.`,
		Example: `  kube-bootstrap preflight
  kube-bootstrap preflight worker --master-ip 192.168.1.10 -o json`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{config.RoleMaster, config.RoleWorker},
	}
	p.addSettings(c, config.Preflight)
	format := addOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkOutput(*format); err != nil {
			return err
		}
		role := ""
		if len(args) == 1 {
			role = args[0]
		}
		cfg, origins, err := p.load(c.Flags(), config.Preflight, role)
		if err != nil {
			return err
		}
		if role == "" {
			role = roleFor(cfg)
		}
		if err := asRoot(); err != nil {
			return err
		}
		h, err := local.OpenWith(cfg, origins)
		if err != nil {
			return err
		}
		return p.printPreflight(c.Context(), *format, preflight.Plan(h.Resolve(c.Context(), role), role))
	}
	return c
}

func roleFor(cfg config.Config) string {
	if cfg.MasterIP != "" && !cfg.Join {
		return config.RoleWorker
	}
	return config.RoleMaster
}

func (p *program) printPreflight(ctx context.Context, format string, looks step.Plan) error {
	var all []checked
	var found []*step.Problem
	bad := false
	for _, f := range (&step.Runner{}).Look(ctx, looks) {
		line := checkedOf(f)
		found = append(found, step.Problems(f.Err)...)
		bad = bad || !line.OK
		all = append(all, line)
	}
	err := p.print(format, all, func(w io.Writer) {
		for _, c := range all {
			c.print(w)
		}
	})
	if err != nil || !bad {
		return err
	}
	return &preflightError{names(found)}
}

func checkedOf(f step.Finding) checked {
	line := checked{Check: f.Step, OK: f.Err == nil && len(f.Diff) == 0, Problems: []problem{}}
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

func (c checked) print(w io.Writer) {
	if c.OK {
		cells(w, "ok", c.Check)
	}
	for _, one := range c.Problems {
		text := (&step.Problem{Name: one.Name, Text: one.Text, Remedy: one.Remedy}).Error()
		cells(w, "PROBLEM", fmt.Sprintf("%s: %s", c.Check, text))
	}
}
