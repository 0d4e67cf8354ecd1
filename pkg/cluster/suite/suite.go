// Package suite runs Kubernetes' own end-to-end tests on a cluster.
package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/e2e"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Suite selects the tests of a run.
type Suite struct {
	Programs e2e.Programs
	Images   []e2e.TestImage // images that the tests use
	Tests    []string        // tests that Choice selects

	Focus     string // regular expression of the tests to run; "": the conformance tests
	Serial    bool   // run the serial tests instead of the parallel ones
	Processes int    // that run tests side by side
	ReportDir string // directory for the JUnit file and the log; "": keep neither
}

// Result is the result of a run.
type Result struct {
	Tests  int `json:"tests"` // number of tests that ran
	Passed int `json:"passed"`
	// tests that skipped themselves, because the cluster lacks something
	Skipped   int           `json:"skipped,omitempty"`
	Failed    []TestFailure `json:"failed,omitempty"`
	Seconds   float64       `json:"seconds"`
	Processes int           `json:"processes"`
	Report    string        `json:"report,omitempty"` // the JUnit file
	Log       string        `json:"log,omitempty"`    // what the tests printed
}

// TestFailure is a test that failed.
type TestFailure struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"`
	At      string  `json:"at"` // file:line
}

// Paths of the suite on the control plane that runs it.
const (
	suiteDir       = "/var/lib/kube-bootstrap-e2e"
	suiteReport    = "junit.xml"
	suiteLog       = "e2e.log"
	suiteContainer = "kube-bootstrap-e2e"
)

// Choice returns the arguments that select the tests; prefix is that of the program's flags.
func (s Suite) Choice(prefix string) []string {
	args := []string{prefix + "label-filter=" + s.labels()}
	if s.Focus != "" {
		args = append(args, prefix+"focus="+s.Focus)
	}
	return args
}

func (s Suite) labels() string {
	labels := "!Serial && !Disruptive && !Flaky"
	if s.Serial {
		labels = "Serial && !Flaky"
	}
	if s.Focus == "" {
		labels += " && Conformance"
	}
	return labels
}

// Run runs the suite on the first control plane: there it is inside the
// cluster's networks, as the tests expect, also with a remote engine. It
// returns an error only if the suite could not run; failed tests are in the
// result. The run removes its container, namespaces, mirrors and firewall rules,
// even after an interrupt. The test programs and images stay on the nodes for the
// next run. Remains of a run that was killed are removed first.
func Run(ctx context.Context, options session.Selection, suite Suite, emit func(session.HostEvent)) (Result, error) {
	scope := session.Requirements{Needs: session.Nodes, Lock: session.SuiteLock, Emit: emit}
	return session.Get(ctx, options, scope, func(s *session.Session, state topology.State) (Result, error) {
		controlPlane, err := s.RunningControlPlane(ctx, "")
		if err != nil {
			return Result{}, err
		}
		r := &run{session: s, Suite: suite, controlPlane: controlPlane.ClusterNode, nodes: state.Running()}
		if r.Serial {
			r.Processes = 1
		}
		return r.do(ctx)
	})
}

func (s *run) do(ctx context.Context) (result Result, err error) {
	if err := s.session.Run(ctx, step.Plan{{s.tidy("remove what an earlier run of the tests left")}}); err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, s.leave(ctx)) }()
	err = s.session.Run(ctx, append(s.stages(), []step.Step{s.tests(&result)}))
	return result, err
}

// suiteScript returns the script that runs ginkgo in a container of the kubelet's image, which contains
// kubectl. kubectl calls the host's diff. The script writes the events of the
// tests to stdout.
func suiteScript(program string) string {
	return `image=$(docker inspect -f '{{.Config.Image}}' kubelet) || exit
exec docker run --rm --name ` + suiteContainer + ` --network host -e HOME=/tmp -e ` + e2e.EventsVariable + `=/proc/1/fd/3 -w ` + suiteDir + ` \
	-v ` + suiteDir + `:` + suiteDir + ` -v ` + program + `:` + program + `:ro -v ` + contentDir + `:` + contentDir + `:ro \
	-v /usr/bin/diff:/usr/bin/diff:ro -v ` + apiserver.AdminKubeconfig + `:` + apiserver.AdminKubeconfig + `:ro "$image" \
	/bin/sh -c 'exec 3>&1 >` + suiteLog + ` 2>&1; ` + program + ` serve-images "$0" & exec "$@"' "$@"`
}

// tests returns the step that runs the tests. It succeeds even if tests fail.
func (s *run) tests(result *Result) step.Step {
	const testsID, name = step.ID("run-tests"), "run the tests"
	return step.Always(testsID, name, func(ctx context.Context) error {
		progress := newProgress(len(s.Tests), time.Now, func(line string, running []string) {
			s.session.Emit(session.HostEvent{
				Event: step.Event{
					At: time.Now(), ID: testsID, Step: name, Kind: step.Progress, Message: line, Doing: running,
				},
			})
		}, func(text string) {
			s.session.Emit(session.HostEvent{
				Event: step.Event{At: time.Now(), ID: testsID, Step: name, Kind: step.Note, Message: text},
			})
		})
		var last bytes.Buffer
		err := s.onControlPlane().Exec(ctx, host.Command{Args: s.command(), Stdout: progress, Stderr: &last})
		*result = progress.result()
		result.Processes = s.Processes
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, ran := errors.AsType[*access.ExitError](err); err != nil && !ran {
			return err
		}
		return s.finish(ctx, result, err, last.String())
	})
}

func (s *run) command() []string {
	served := registry.Served{Listen: s.mirror(), Content: contentDir, Images: s.digests}
	settings, err := json.Marshal(served)
	if err != nil {
		panic(err) // strings only
	}
	args := access.Script(suiteScript(s.session.Provider.ProgramPath()), string(settings), suiteDir+"/ginkgo", "run",
		"--no-color", "--silence-skips", "--timeout=24h",
		"--junit-report="+suiteReport, "--output-dir="+suiteDir)
	if s.Processes > 1 {
		args = append(args, "--procs="+strconv.Itoa(s.Processes))
	}
	return append(append(args, s.Choice("--")...), suiteDir+"/e2e.test", "--",
		"--provider=local", "--kubeconfig="+apiserver.AdminKubeconfig, "--disable-log-dump",
		"--dump-logs-on-failure=false")
}

// finish keeps the report and the log. A run that failed although no test did is an error.
func (s *run) finish(ctx context.Context, result *Result, failed error, said string) error {
	var err error
	if s.ReportDir != "" {
		err = os.MkdirAll(s.ReportDir, 0o755)
		result.Report, result.Log = filepath.Join(s.ReportDir, suiteReport), filepath.Join(s.ReportDir, suiteLog)
		err = errors.Join(err, s.copyOut(ctx, suiteReport, result.Report), s.copyOut(ctx, suiteLog, result.Log))
	}
	if failed == nil || len(result.Failed) > 0 {
		return err
	}
	log, _ := access.Output(ctx, s.onControlPlane(), "tail", "-n", strconv.Itoa(remote.LastLines),
		suiteDir+"/"+suiteLog)
	return errors.Join(err, fmt.Errorf("%w\n%s", failed, strings.TrimSpace(log+said)))
}

func (s *run) copyOut(ctx context.Context, name, to string) error {
	from, err := s.onControlPlane().Get(ctx, suiteDir+"/"+name)
	if err != nil {
		return err
	}
	defer from.Close()
	return cache.Save(to, from)
}

type run struct {
	session *session.Session
	Suite
	controlPlane topology.ClusterNode
	nodes        []topology.NodeState // that run
	digests      map[string]v1.Hash   // of the images of the tests on the control plane
}

func (s *run) onControlPlane() access.Connection { return s.session.Node(s.controlPlane.Name) }
