package cluster

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Suite is a run of Kubernetes' own end-to-end tests.
type Suite struct {
	Test   string   // the program with the tests, here
	Ginkgo string   // what runs it in parallel, here
	Images []string // archives of the images that the tests run
	Refs   []string // their names

	Focus     string // regular expression of the tests to run; "": the conformance tests
	Serial    bool   // those that tolerate no others beside them, instead of all others
	Processes int    // that run tests side by side
	ReportDir string // where the JUnit file goes; "": nowhere
	Out       io.Writer
}

// SuiteResult counts what a run of the suite has found.
type SuiteResult struct {
	Tests   int      `json:"tests"`
	Failed  []string `json:"failed,omitempty"`
	Seconds float64  `json:"seconds"`          // by the clock of the tests
	Report  string   `json:"report,omitempty"` // the JUnit file
}

// Where the suite lies on the master that runs it.
const (
	suiteDir    = "/var/lib/kube-bootstrap-e2e"
	suiteReport = "junit.xml"
)

// RunSuite runs the suite on the first master, which is a part of the cluster's
// networks as its author expects, wherever the engine is. An error means that
// it could not be run; tests that fail are in the result.
func RunSuite(ctx context.Context, options Options, suite Suite, emit func(Event)) (SuiteResult, error) {
	f, err := open(options, emit)
	if err != nil {
		return SuiteResult{}, err
	}
	defer f.docker.Close()
	release, err := f.lockFor("e2e")
	if err != nil {
		return SuiteResult{}, err
	}
	defer release()
	master, err := f.firstMaster(ctx, "")
	if err != nil {
		return SuiteResult{}, err
	}
	run := &suiteRun{fleet: f, Suite: suite, master: member{name: master.Name, role: Master, addr: master.Addr}}
	rows, err := run.rows(ctx)
	if err != nil {
		return SuiteResult{}, err
	}
	runner := &step.Runner{Emit: func(e step.Event) { f.emit(Event{Event: e}) }}
	if err := runner.Do(ctx, rows); err != nil {
		return SuiteResult{}, err
	}
	if err := run.matches(ctx); err != nil {
		return SuiteResult{}, err
	}
	return run.tests(ctx)
}

type suiteRun struct {
	*fleet
	Suite
	master member
}

// rows bring the programs to the master and the images to every node.
func (s *suiteRun) rows(ctx context.Context) (step.Plan, error) {
	found, err := s.found(ctx)
	if err != nil {
		return nil, err
	}
	row := []step.Step{
		s.put("put the tests on "+s.master.name, s.master, s.Test, suiteDir+"/e2e.test", 0o755),
		s.put("put ginkgo on "+s.master.name, s.master, s.Ginkgo, suiteDir+"/ginkgo", 0o755),
	}
	for _, m := range found {
		if m.State == "running" {
			row = append(row, s.images(m))
		}
	}
	return step.Plan{row}, nil
}

// images is the step that loads the images of the tests into a node.
func (s *suiteRun) images(m docker.FoundMachine) step.Step {
	node := driver.OpenDocker(s.docker, m.Name)
	missing := func(ctx context.Context) (archives []string, refs step.Diff, err error) {
		var out bytes.Buffer
		err = node.Exec(ctx, driver.Exec{Args: []string{"ctr", "-n", "k8s.io", "images", "ls", "-q"}, Stdout: &out})
		there := strings.Fields(out.String())
		for i, ref := range s.Refs {
			if !slices.Contains(there, ref) {
				archives, refs = append(archives, s.Images[i]), append(refs, "load "+ref)
			}
		}
		return archives, refs, err
	}
	return step.Step{
		Name: "load the images of the tests into " + m.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			_, refs, err := missing(ctx)
			return refs, err
		},
		Apply: func(ctx context.Context) error {
			archives, _, err := missing(ctx)
			for _, archive := range archives {
				err = errors.Join(err, importArchive(ctx, node, archive))
			}
			return err
		},
	}
}

func importArchive(ctx context.Context, node driver.Node, path string) error {
	archive, err := os.Open(path)
	if err != nil {
		return err
	}
	defer archive.Close()
	return node.Exec(ctx, driver.Exec{Args: []string{"ctr", "-n", "k8s.io", "images", "import", "-"}, Stdin: archive})
}

// labels choose between the tests that may run side by side and the others.
func (s *suiteRun) labels() string {
	labels := "!Serial && !Disruptive && !Flaky"
	if s.Serial {
		labels = "Serial && !Flaky"
	}
	if s.Focus == "" {
		labels += " && Conformance"
	}
	return labels
}

// suiteScript runs a program of the suite in a container of the kubelet's
// image, which has kubectl and all that it needs. One of a run that was killed,
// or is still tidying up after an interruption, makes room for it.
const suiteScript = `image=$(docker inspect -f '{{.Config.Image}}' kubelet) || exit
docker rm -f kube-bootstrap-e2e >/dev/null 2>&1
exec docker run --rm --name kube-bootstrap-e2e --network host -e HOME=/tmp -w ` + suiteDir + ` \
	-v ` + suiteDir + `:` + suiteDir + ` -v ` + adminKubeconfig + `:` + adminKubeconfig + `:ro "$image" "$@"`

func (s *suiteRun) run(ctx context.Context, out io.Writer, args ...string) error {
	all := append([]string{"/bin/sh", "-c", suiteScript, "sh"}, args...)
	return s.node(s.master).Exec(ctx, driver.Exec{Args: all, Stdout: out, Stderr: out})
}

var ranSpecs = regexp.MustCompile(`Ran (\d+) of \d+ Specs`)

// matches asks the tests themselves which of them are meant.
func (s *suiteRun) matches(ctx context.Context) error {
	var out bytes.Buffer
	err := s.run(ctx, &out, append([]string{suiteDir + "/e2e.test", "--ginkgo.dry-run", "--ginkgo.no-color"}, s.choice("--ginkgo.")...)...)
	found := ranSpecs.FindStringSubmatch(out.String())
	if found == nil {
		return fmt.Errorf("list the tests: %w\n%s", err, lastLines(out.String(), keptLines))
	}
	if n, _ := strconv.Atoi(found[1]); n == 0 {
		return &step.Problem{Name: "focus", Text: fmt.Sprintf("no test matches %q", s.Focus), Remedy: "use words of a test's name; " +
			"`cluster e2e` has those that run side by side, `cluster e2e-serial` the others"}
	}
	return nil
}

func (s *suiteRun) choice(prefix string) []string {
	args := []string{prefix + "label-filter=" + s.labels()}
	if s.Focus != "" {
		args = append(args, prefix+"focus="+s.Focus)
	}
	return args
}

func (s *suiteRun) tests(ctx context.Context) (SuiteResult, error) {
	args := []string{suiteDir + "/ginkgo", "run", "--no-color", "--silence-skips", "--timeout=24h", "--junit-report=" + suiteReport, "--output-dir=" + suiteDir}
	if !s.Serial {
		args = append(args, "--procs="+strconv.Itoa(max(1, s.Processes)))
	}
	args = append(append(args, s.choice("--")...), suiteDir+"/e2e.test", "--",
		"--provider=local", "--kubeconfig="+adminKubeconfig, "--disable-log-dump", "--dump-logs-on-failure=false")
	failed := s.run(ctx, s.Out, args...)
	var exit *driver.ExitError
	if failed != nil && !errors.As(failed, &exit) {
		return SuiteResult{}, failed
	}
	report, err := s.node(s.master).Get(ctx, suiteDir+"/"+suiteReport)
	if err != nil {
		return SuiteResult{}, errors.Join(failed, err)
	}
	defer report.Close()
	data, err := io.ReadAll(report)
	if err != nil {
		return SuiteResult{}, err
	}
	return s.result(data, failed)
}

// result reads the report. A run that failed without a failed test is an error.
func (s *suiteRun) result(data []byte, failed error) (SuiteResult, error) {
	result, err := readReport(data)
	if err != nil {
		return result, err
	}
	if s.ReportDir != "" {
		if err := os.MkdirAll(s.ReportDir, 0o755); err != nil {
			return result, err
		}
		result.Report = filepath.Join(s.ReportDir, suiteReport)
		if err := os.WriteFile(result.Report, data, 0o644); err != nil {
			return result, err
		}
	}
	if len(result.Failed) == 0 && failed != nil {
		return result, fmt.Errorf("run the tests: %w", failed)
	}
	return result, nil
}

// readReport counts the tests of a JUnit file; those that were not meant are in
// it as skipped.
func readReport(data []byte) (result SuiteResult, err error) {
	var report struct {
		Time  float64 `xml:"time,attr"`
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Status  string    `xml:"status,attr"`
			Skipped *struct{} `xml:"skipped"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		return result, fmt.Errorf("report of the tests: %w", err)
	}
	result.Seconds = report.Time
	for _, c := range report.Cases {
		if c.Skipped != nil || !strings.HasPrefix(c.Name, "[It] ") {
			continue
		}
		result.Tests++
		if c.Failure != nil || c.Error != nil {
			result.Failed = append(result.Failed, strings.TrimPrefix(c.Name, "[It] "))
		}
	}
	return result, nil
}

func lastLines(text string, n int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
