package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// hostStatus is what `status -o json` prints.
type hostStatus struct {
	Role    string       `json:"role"` // empty: no part of a cluster
	InPlace bool         `json:"inPlace"`
	Steps   []stepStatus `json:"steps"`
}

type stepStatus struct {
	Row     int      `json:"row"`
	Step    string   `json:"step"`
	InPlace bool     `json:"inPlace"`
	Missing []string `json:"missing"`
	Error   string   `json:"error,omitempty"`
}

func (p *program) statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show, layer by layer, what is in place on this host and what is not",
		Long: `Show, layer by layer, what is in place on this host and what is not. Nothing is
changed; running master or worker again repairs what is missing. The exit code
is 5 when something is.`,
		Example: "  kube-bootstrap status\n  kube-bootstrap status -o json",
		Args:    cobra.NoArgs,
	}
	format := addOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkOutput(*format); err != nil {
			return err
		}
		if err := asRoot(); err != nil {
			return err
		}
		status, err := lookAtHost(c.Context())
		if err != nil {
			return err
		}
		if err := p.print(*format, status, status.print); err != nil {
			return err
		}
		if !status.InPlace {
			return errNotInPlace
		}
		return nil
	}
	return c
}

func lookAtHost(ctx context.Context) (hostStatus, error) {
	status := hostStatus{Steps: []stepStatus{}}
	saved, err := plan.ReadSaved(host.Files{})
	if err != nil || saved.Role == "" {
		return status, err
	}
	_, made, err := installed(saved.Config.KeepImages)
	if err != nil {
		return status, err
	}
	status.Role, status.InPlace = saved.Role, true
	for _, f := range (&step.Runner{}).Look(ctx, made) {
		one := stepStatus{Row: f.Row, Step: f.Step, InPlace: f.Err == nil && len(f.Diff) == 0, Missing: append([]string{}, f.Diff...)}
		if f.Err != nil {
			one.Error = f.Err.Error()
		}
		status.InPlace = status.InPlace && one.InPlace
		status.Steps = append(status.Steps, one)
	}
	return status, ctx.Err()
}

func (s hostStatus) print(w io.Writer) {
	if s.Role == "" {
		fmt.Fprintln(w, "this host is no part of a cluster; `kube-bootstrap master` or `kube-bootstrap worker` makes it one")
		return
	}
	fmt.Fprintf(w, "this host is a %s\n", s.Role)
	for _, one := range s.Steps {
		switch {
		case one.Error != "":
			cells(w, "UNKNOWN", one.Step, one.Error)
		case !one.InPlace:
			cells(w, "MISSING", one.Step, strings.Join(one.Missing, "; "))
		default:
			cells(w, "ok", one.Step)
		}
	}
	if !s.InPlace {
		fmt.Fprintf(w, "run `kube-bootstrap %s` to repair it\n", s.Role)
	}
}
