package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Suite is a run of Kubernetes' own end-to-end tests.
type Suite struct {
	Programs image.Suite
	Images   []image.SuiteImage // images that the tests use
	Tests    []string           // tests that Choice selects

	Focus     string // regular expression of the tests to run; "": the conformance tests
	Serial    bool   // run the serial tests instead of the parallel ones
	Processes int    // that run tests side by side
	ReportDir string // directory for the JUnit file and the log; "": keep neither
}

// SuiteResult counts what a run of the suite has found.
type SuiteResult struct {
	Tests     int           `json:"tests"` // number of tests that ran
	Passed    int           `json:"passed"`
	Skipped   int           `json:"skipped,omitempty"` // tests that skipped themselves, because the cluster lacks something
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

// Choice returns the arguments that select the tests, with the prefix that the
// program's flags have.
func (s Suite) Choice(prefix string) []string {
	args := []string{prefix + "label-filter=" + s.labels()}
	if s.Focus != "" {
		args = append(args, prefix+"focus="+s.Focus)
	}
	return args
}

// labels returns the label filter for the parallel or the serial tests.
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

// RunSuite runs the suite on the first control plane: there it is inside the
// cluster's networks, as the tests expect, also with a remote engine. It
// returns an error only if the suite could not run; failed tests are in the
// result. Everything that the run creates is removed, even after an interrupt.
// Remains of a run that was killed are removed first.
func RunSuite(ctx context.Context, options Options, suite Suite, emit func(Event)) (result SuiteResult, err error) {
	f, err := open(options, emit)
	if err != nil {
		return SuiteResult{}, err
	}
	defer f.docker.Close()
	release, err := f.lockFor(ctx, "e2e")
	if err != nil {
		return SuiteResult{}, err
	}
	defer release()
	master, err := f.firstMaster(ctx, "")
	if err != nil {
		return SuiteResult{}, err
	}
	run := &suiteRun{fleet: f, Suite: suite, master: member{name: master.Name, role: Master, addr: master.Addr}}
	if run.Serial {
		run.Processes = 1
	}
	if run.nodes, err = f.found(ctx); err != nil {
		return SuiteResult{}, err
	}
	if err := f.run(ctx, step.Plan{{run.tidy("remove what an earlier run of the tests left")}}); err != nil {
		return SuiteResult{}, err
	}
	defer func() { err = errors.Join(err, run.leave(ctx)) }()
	if err := f.run(ctx, append(run.rows(), []step.Step{run.tests(&result)})); err != nil {
		return result, err
	}
	return result, nil
}

// suiteScript runs ginkgo in a container of the kubelet's image, which contains
// kubectl. kubectl calls the host's diff. The script writes the events of the
// tests to stdout.
const suiteScript = `image=$(docker inspect -f '{{.Config.Image}}' kubelet) || exit
exec docker run --rm --name ` + suiteContainer + ` --network host -e HOME=/tmp -e ` + image.TestEvents + `=/proc/1/fd/3 -w ` + suiteDir + ` \
	-v ` + suiteDir + `:` + suiteDir + ` -v ` + binaryPath + `:` + binaryPath + `:ro -v ` + contentDir + `:` + contentDir + `:ro \
	-v /usr/bin/diff:/usr/bin/diff:ro -v ` + adminKubeconfig + `:` + adminKubeconfig + `:ro "$image" \
	/bin/sh -c 'exec 3>&1 >` + suiteLog + ` 2>&1; ` + binaryPath + ` serve-images "$0" & exec "$@"' "$@"`

// tests returns the step that runs the tests. Failed tests do not make the step
// fail.
func (s *suiteRun) tests(result *SuiteResult) step.Step {
	const name = "run the tests"
	return step.Step{
		Name: name, Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{name}, nil },
		Apply: func(ctx context.Context) error {
			progress := newSuiteProgress(len(s.Tests), time.Now, func(line string, running []string) {
				s.emit(Event{Event: step.Event{At: time.Now(), Step: name, Kind: step.Progress, Message: line, Doing: running}})
			}, func(text string) {
				s.emit(Event{Event: step.Event{At: time.Now(), Step: name, Kind: step.Note, Message: text}})
			})
			var last bytes.Buffer
			err := s.node(s.master).Exec(ctx, driver.Exec{Args: s.command(), Stdout: progress, Stderr: &last})
			*result = progress.result()
			result.Processes = s.Processes
			var exit *driver.ExitError
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil && !errors.As(err, &exit):
				return err
			}
			return s.finish(ctx, result, err, last.String())
		},
	}
}

func (s *suiteRun) command() []string {
	served := registry.Served{Listen: s.mirror(), Content: contentDir, Images: s.digests}
	settings, err := json.Marshal(served)
	if err != nil {
		panic(err) // strings only
	}
	args := []string{"/bin/sh", "-c", suiteScript, "sh", string(settings), suiteDir + "/ginkgo", "run", "--no-color", "--silence-skips", "--timeout=24h",
		"--junit-report=" + suiteReport, "--output-dir=" + suiteDir}
	if s.Processes > 1 {
		args = append(args, "--procs="+strconv.Itoa(s.Processes))
	}
	return append(append(args, s.Choice("--")...), suiteDir+"/e2e.test", "--",
		"--provider=local", "--kubeconfig="+adminKubeconfig, "--disable-log-dump", "--dump-logs-on-failure=false")
}

// finish keeps the report and the log. If the run failed although no test did,
// finish returns an error.
func (s *suiteRun) finish(ctx context.Context, result *SuiteResult, failed error, said string) error {
	var err error
	if s.ReportDir != "" {
		err = os.MkdirAll(s.ReportDir, 0o755)
		result.Report, result.Log = filepath.Join(s.ReportDir, suiteReport), filepath.Join(s.ReportDir, suiteLog)
		err = errors.Join(err, s.copyOut(ctx, suiteReport, result.Report), s.copyOut(ctx, suiteLog, result.Log))
	}
	if failed == nil || len(result.Failed) > 0 {
		return err
	}
	var log bytes.Buffer
	_ = s.node(s.master).Exec(ctx, driver.Exec{Args: []string{"tail", "-n", strconv.Itoa(keptLines), suiteDir + "/" + suiteLog}, Stdout: &log})
	return errors.Join(err, fmt.Errorf("%w\n%s", failed, strings.TrimSpace(log.String()+said)))
}

// copyOut copies a file of the run to this machine.
func (s *suiteRun) copyOut(ctx context.Context, name, to string) error {
	from, err := s.node(s.master).Get(ctx, suiteDir+"/"+name)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}

type suiteRun struct {
	*fleet
	Suite
	master  member
	nodes   []docker.FoundMachine
	digests map[string]v1.Hash
}
