package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/bundles"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/suite"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/e2e"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func clusterE2E(con *console.Console) *cobra.Command {
	return suiteCommand(con, false, &cobra.Command{
		Use:   "e2e [FOCUS]",
		Short: "Run the tests of Kubernetes that may run concurrently",
		Long: `Run the end-to-end tests of Kubernetes on a running cluster. FOCUS is a regular
expression that selects tests by name; without it, the conformance tests run.
"cluster e2e-serial" runs the tests that must run alone.

The tests and the images that they use are built from the source of the cluster's
version, which takes minutes once. Failures are printed when they happen and in a
table at the end; the exit code is 1 when a test fails. An interrupted run ends the
tests and removes their namespaces.`,
		Example: `  kube-bootstrap cluster e2e 'should serve a basic endpoint'
  kube-bootstrap cluster e2e --processes 8 --report-dir results`,
	})
}

func clusterE2ESerial(con *console.Console) *cobra.Command {
	return suiteCommand(con, true, &cobra.Command{
		Use:     "e2e-serial [FOCUS]",
		Short:   "Run the tests of Kubernetes that must run alone",
		Long:    `Run the end-to-end tests of Kubernetes that must run alone, one after the other. See "cluster e2e".`,
		Example: "  kube-bootstrap cluster e2e-serial\n  kube-bootstrap cluster e2e-serial 'validates resource limits'",
	})
}

func suiteCommand(con *console.Console, serial bool, c *cobra.Command) *cobra.Command {
	o := AddNameFlags(con, c)
	format := output.AddFlag(c)
	tests := suite.Suite{Serial: serial}
	c.Flags().StringVar(&tests.ReportDir, "report-dir", "",
		"directory for the results as JUnit and the log of the tests")
	if !serial {
		c.Flags().IntVar(&tests.Processes, "processes", 4, "tests to run at the same time")
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		tests.Focus = strings.Join(args, "")
		if _, err := regexp.Compile(tests.Focus); err != nil {
			return exit.Usage(fmt.Errorf("FOCUS %q: %w", tests.Focus, err))
		}
		return runSuite(c.Context(), con, *o, tests, *format)
	}
	return c
}

func runSuite(
	ctx context.Context, con *console.Console, o cluster.Options, tests suite.Suite, format output.Format,
) error {
	nodes, err := apiserver.Nodes(ctx, o.Selection)
	if err != nil {
		return exit.Firm(err)
	}
	runner, err := con.Begin()
	if err != nil {
		return err
	}
	if err := buildSuite(ctx, con.Say, runner, nodes, &tests); err != nil {
		return err
	}
	result, err := suite.Run(ctx, o.Selection, tests, func(e session.HostEvent) { runner.Emit(e.Event) })
	con.End()
	if err != nil {
		return exit.Firm(err)
	}
	if err := format.Print(con.Out, "ConformanceResult", result,
		func(w io.Writer) { printSuite(w, result) }); err != nil {
		return err
	}
	if n := len(result.Failed); n > 0 {
		return fmt.Errorf("%d of %d tests failed", n, result.Tests)
	}
	return nil
}

func printSuite(w io.Writer, r suite.Result) {
	if len(r.Failed) > 0 {
		fmt.Fprintln(w, "FAILED\tAFTER\tAT\tBECAUSE")
		for _, f := range r.Failed {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Name, progress.Took(time.Duration(f.Seconds*float64(time.Second))),
				f.At, progress.FirstLine(f.Message))
		}
	}
	fmt.Fprintf(w, "%d tests, %d passed, %d failed, %d skipped, %s with %d processes\n", r.Tests, r.Passed,
		len(r.Failed), r.Skipped,
		progress.Took(time.Duration(r.Seconds*float64(time.Second))), r.Processes)
	if r.Report != "" {
		fmt.Fprintf(w, "report: %s\nlog: %s\n", r.Report, r.Log)
	}
}

// buildSuite builds the tests for the cluster's version, and the images that they use.
func buildSuite(ctx context.Context, say func(string), runner *step.Runner, nodes []apiserver.NodeStatus,
	tests *suite.Suite) error {
	if len(nodes) == 0 {
		return exit.Firm(errors.New("the cluster has no nodes; run `kube-bootstrap cluster status`"))
	}
	// A version that reup has built is tested as the release that it is based on.
	version, _, _ := strings.Cut(nodes[0].Version, "+")
	v, err := image.For(version, image.Versions{})
	if err != nil {
		return err
	}
	builder := &image.Builder{Cache: cache.Dir()}
	if err := sayEffort(ctx, say, builder, v); err != nil {
		return err
	}
	return runner.Do(ctx, step.Plan{
		{step.Always("build-tests", "build the tests of Kubernetes "+version, func(ctx context.Context) (err error) {
			if tests.Programs, err = e2e.Compile(ctx, builder, v, runtime.GOARCH); err != nil {
				return err
			}
			tests.Tests, err = tests.Programs.Tests(ctx, tests.Choice("--ginkgo.")...)
			if err == nil && len(tests.Tests) == 0 {
				return &step.Problem{Name: "focus", Text: fmt.Sprintf("no test matches %q", tests.Focus),
					Remedy: "use words of a test's name; " +
						"`cluster e2e` runs the parallel tests, `cluster e2e-serial` the serial tests"}
			}
			return err
		})},
		{step.Always("test-images", suiteImagesStep, func(ctx context.Context) error {
			images, unbuilt, err := tests.Programs.Images(ctx, builder, v, tests.Tests, runtime.GOARCH)
			tests.Images = images
			for _, u := range unbuilt {
				runner.Emit(step.Event{At: time.Now(), Step: suiteImagesStep, Kind: step.Note, Message: unbuiltNote(u)})
			}
			return err
		})},
	})
}

// sayEffort says what it takes to compile the tests, which is mostly Kubernetes itself.
func sayEffort(ctx context.Context, say func(string), builder *image.Builder, v image.Versions) error {
	pending, err := builder.Pending(ctx, []image.Recipe{v.Recipe("hyperkube"), v.Recipe("suite")}, runtime.GOARCH)
	if err != nil || !slices.ContainsFunc(pending, func(p image.Pending) bool { return p.Recipe.Name == "suite" }) {
		return err
	}
	e := builder.Effort(pending, runtime.NumCPU())
	e.Programs = 1
	bundles.SayEffort(say, e)
	return nil
}

const suiteImagesStep = "build the images of the tests"

// unbuiltNote states which image is missing and which tests will fail without it.
func unbuiltNote(u e2e.Unbuilt) string {
	text := fmt.Sprintf("%s is not built: %s", u.Ref, u.Reason)
	if len(u.Tests) == 0 {
		return text + "; which tests need it is not known"
	}
	return text + fmt.Sprintf("; %d tests may need it:\n  ", len(u.Tests)) + strings.Join(u.Tests, "\n  ")
}
