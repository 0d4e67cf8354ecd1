package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const lockPath = "/run/kube-bootstrap.lock"

const resumeAdvice = "run the same command again to finish, or `kube-bootstrap turndown` to take it back"

// hostVerb is master or worker: both walk a plan, they differ in which.
type hostVerb struct {
	role string
	verb config.Verb
	plan func(*local.Host) step.Plan
	next string // what the user may do afterwards
}

// addHostVerb gives the command its flags and makes it walk the verb's plan.
func (p *program) addHostVerb(c *cobra.Command, v hostVerb) *cobra.Command {
	p.addSettings(c, v.verb)
	p.addTimeline(c)
	dryRun := c.Flags().Bool("dry-run", false, "list every change and make none")
	format := addOutput(c)
	c.Flags().Lookup("output").Usage = "how --dry-run prints: table, json or yaml"
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkOutput(*format); err != nil {
			return err
		}
		cfg, origins, err := p.load(c.Flags(), v.verb, v.role)
		if err != nil {
			return err
		}
		h, release, err := p.openHost(c.Context(), cfg, origins, v.role)
		if err != nil {
			return err
		}
		defer release()
		p.tellSettings(h, origins, v.verb)
		if h, err = p.lookFirst(c.Context(), h, v.role); err != nil {
			return err
		}
		if *dryRun {
			return p.printChanges(c.Context(), *format, v.plan(h))
		}
		return p.walk(c.Context(), v, h)
	}
	return c
}

func (p *program) addTimeline(c *cobra.Command) {
	c.Flags().StringVar(&p.timeline, "timeline", "", "file to draw where the time went into, as SVG")
}

// openHost takes the lock and looks at this machine, in the order in which a
// user can put things right.
func (p *program) openHost(ctx context.Context, cfg config.Config, given config.Origins, role string) (*local.Host, func(), error) {
	if err := asRoot(); err != nil {
		return nil, nil, err
	}
	saved, err := local.ReadSaved(host.Files{})
	if err != nil {
		return nil, nil, err
	}
	if saved.Role != role && (role == config.RoleWorker || cfg.Join) {
		if errs := cfg.ValidateJoin(role); len(errs) > 0 {
			return nil, nil, &usageError{errs.ToAggregate()}
		}
	}
	release, err := host.Lock(ctx, lockPath)
	if err != nil {
		return nil, nil, err
	}
	h, err := local.OpenWith(cfg, given)
	if err != nil {
		release()
		return nil, nil, err
	}
	return h, release, nil
}

func asRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return &step.Problem{Name: "root", Text: "this works on the host itself and you are not root", Remedy: "run it with sudo"}
}

// lookFirst resolves the host and runs its preflight checks. The checks are
// shown as one step, and their problems are reported together at the end.
func (p *program) lookFirst(ctx context.Context, h *local.Host, role string) (*local.Host, error) {
	runner, err := p.begin()
	if err != nil {
		return nil, err
	}
	e := step.Event{At: time.Now(), Row: -1, Step: "preflight", Kind: step.Started}
	runner.Emit(e)
	h = h.Resolve(ctx, role)
	e.Err = (&step.Runner{}).Do(ctx, preflight.Plan(h, role))
	e.At, e.Kind = time.Now(), step.Done
	if e.Err != nil {
		e.Kind = step.Failed
	}
	runner.Emit(e)
	return h, onlyProblems(e.Err)
}

// onlyProblems drops the names of the checks from around their problems.
func onlyProblems(err error) error {
	var all []error
	for _, e := range joined(err) {
		found := step.Problems(e)
		if len(found) == 0 {
			all = append(all, e)
		}
		for _, problem := range found {
			all = append(all, problem)
		}
	}
	if len(all) == 0 {
		return err
	}
	return errors.Join(all...)
}

func (p *program) walk(ctx context.Context, v hostVerb, h *local.Host) error {
	started := time.Now()
	runner := &step.Runner{Emit: p.report.Event}
	if h.Changing() {
		if err := h.Suspend(); err != nil {
			return err
		}
	}
	if err := runner.Do(ctx, v.plan(h)); err != nil {
		return &resumeError{err, v.advice(h)}
	}
	p.endProgress()
	p.say(fmt.Sprintf("this host is a %s of the cluster, in %s", v.role, progress.Took(time.Since(started))))
	p.say(v.next)
	return nil
}

// advice returns the next step after a failure, which has not saved new
// settings.
func (v hostVerb) advice(h *local.Host) string {
	if !h.Changing() || h.Upgrading() {
		return resumeAdvice
	}
	return "the settings from before stay in force: run the same command again to finish, or `kube-bootstrap " + v.role + "` to go back to them"
}

// change is one step of a dry run.
type change struct {
	Row     int      `json:"row"`
	Step    string   `json:"step"`
	Changes []string `json:"changes"`
	Error   string   `json:"error,omitempty"`
}

// printChanges looks at every step and lists what Apply would do.
func (p *program) printChanges(ctx context.Context, format string, todo step.Plan) error {
	p.endProgress()
	changes := []change{}
	var errs []error
	for _, f := range (&step.Runner{}).Look(ctx, todo) {
		switch {
		case step.IsUnanswered(f.Err):
			changes = append(changes, change{f.Row, f.Step, []string{"not known before the run: " + f.Err.Error()}, ""})
		case f.Err != nil:
			changes = append(changes, change{f.Row, f.Step, []string{}, f.Err.Error()})
			errs = append(errs, fmt.Errorf("%s: %w", f.Step, f.Err))
		case len(f.Diff) > 0:
			changes = append(changes, change{f.Row, f.Step, f.Diff, ""})
		}
	}
	err := p.print(format, changes, func(w io.Writer) {
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
