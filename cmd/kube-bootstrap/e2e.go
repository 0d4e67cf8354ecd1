package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (p *program) clusterE2E() *cobra.Command {
	c := p.suiteCommand(false, &cobra.Command{
		Use:   "e2e [FOCUS]",
		Short: "Run Kubernetes' own tests that may run side by side",
		Long: `Run Kubernetes' own end-to-end tests on a cluster that is up: those whose names
match the regular expression FOCUS, or the conformance tests, as far as they may
run side by side. The tests and the images that they use are built from the
source of the cluster's version, which takes minutes once. The exit code is 1
when a test fails.`,
		Example: `  kube-bootstrap cluster e2e 'should serve a basic endpoint'
  kube-bootstrap cluster e2e --processes 8 --report-dir results`,
	})
	return c
}

func (p *program) clusterE2ESerial() *cobra.Command {
	return p.suiteCommand(true, &cobra.Command{
		Use:   "e2e-serial [FOCUS]",
		Short: "Run Kubernetes' own tests that tolerate no others beside them",
		Long: `Run those of Kubernetes' own end-to-end tests that tolerate no others beside
them, one after the other. See "cluster e2e".`,
		Example: "  kube-bootstrap cluster e2e-serial\n  kube-bootstrap cluster e2e-serial 'validates resource limits'",
	})
}

func (p *program) suiteCommand(serial bool, c *cobra.Command) *cobra.Command {
	o := p.addFleet(c)
	format := addOutput(c)
	suite := cluster.Suite{Serial: serial}
	c.Args = cobra.MaximumNArgs(1)
	c.Flags().StringVar(&suite.ReportDir, "report-dir", "", "directory for the results as JUnit")
	if !serial {
		c.Flags().IntVar(&suite.Processes, "processes", 4, "tests to run at the same time")
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(p.fleet(c, o), checkOutput(*format)); err != nil {
			return err
		}
		suite.Focus = strings.Join(args, "")
		if _, err := regexp.Compile(suite.Focus); err != nil {
			return &usageError{fmt.Errorf("FOCUS %q: %w", suite.Focus, err)}
		}
		return p.runSuite(c.Context(), *o, suite, *format)
	}
	return c
}

func (p *program) runSuite(ctx context.Context, o cluster.Options, suite cluster.Suite, format string) error {
	nodes, err := cluster.Nodes(ctx, o)
	if err != nil {
		return &firmError{err}
	}
	runner, err := p.begin()
	if err != nil {
		return err
	}
	if err := builtSuite(ctx, runner, nodes, &suite); err != nil {
		return err
	}
	suite.Out = p.err
	if format == "table" {
		suite.Out = p.out
	}
	result, err := cluster.RunSuite(ctx, o, suite, func(e cluster.Event) { runner.Emit(e.Event) })
	p.endProgress()
	if err != nil {
		return &firmError{err}
	}
	if err := p.print(format, result, func(w io.Writer) { printSuite(w, result) }); err != nil {
		return err
	}
	if n := len(result.Failed); n > 0 {
		return fmt.Errorf("%d of %d tests failed", n, result.Tests)
	}
	return nil
}

func printSuite(w io.Writer, r cluster.SuiteResult) {
	for _, name := range r.Failed {
		fmt.Fprintln(w, "FAILED "+name)
	}
	fmt.Fprintf(w, "%d tests, %d failed, %s\n", r.Tests, len(r.Failed), took(time.Duration(r.Seconds*float64(time.Second))))
	if r.Report != "" {
		fmt.Fprintln(w, "report: "+r.Report)
	}
}

// builtSuite makes the tests of the version that the cluster runs.
func builtSuite(ctx context.Context, runner *step.Runner, nodes []cluster.Node, suite *cluster.Suite) error {
	if len(nodes) == 0 {
		return &firmError{errors.New("the cluster has no nodes; run `kube-bootstrap cluster up`")}
	}
	// A version of its own, as reup makes them, is tested as what it was made of.
	version, _, _ := strings.Cut(nodes[0].Version, "+")
	v, err := image.For(version, image.Versions{})
	if err != nil {
		return err
	}
	make := step.Step{
		Name: "build the tests of Kubernetes " + version, Waits: true,
		Check: func(context.Context) (step.Diff, error) {
			return step.Diff{"build the tests and their images"}, nil
		},
		Apply: func(ctx context.Context) error {
			builder := &image.Builder{Cache: image.CacheDir()}
			built, err := builder.Suite(ctx, v, runtime.GOARCH)
			suite.Test, suite.Ginkgo, suite.Images, suite.Refs = built.Test, built.Ginkgo, built.Images, built.Refs
			return err
		},
	}
	return runner.Do(ctx, step.Plan{{make}})
}
