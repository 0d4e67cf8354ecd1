package suite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestSuiteProgress reads the events of a run with two processes, in the pieces
// in which a pipe delivers them.
func TestSuiteProgress(t *testing.T) {
	recorded := must.Read(t, "testdata/suite-events.jsonl")
	var reported, told []string
	now := time.Unix(0, 0)
	p := newProgress(12, func() time.Time { return now }, func(line string, running []string) {
		reported = append(reported, line+": "+strings.Join(running, ", "))
	}, func(text string) { told = append(told, text) })
	for piece := range slices.Chunk(recorded, 100) {
		now = now.Add(time.Second)
		if _, err := p.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if want := "0 of 12, 0 passed, 0 failed: Secrets should be consumable from pods in volume"; reported[0] != want {
		t.Errorf("first: %q, want %q", reported[0], want)
	}
	if !slices.ContainsFunc(reported, func(line string) bool {
		return strings.HasPrefix(line, "1 of 12, 1 passed, 0 failed: ") && strings.Contains(line, ", ")
	}) {
		t.Errorf("no line names two tests that run:\n%s", strings.Join(reported, "\n"))
	}
	if last := reported[len(reported)-1]; last != "11 of 12, 9 passed, 1 failed: DNS should provide DNS for the cluster" {
		t.Errorf("last: %q", last)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "failed: [sig-apps] StatefulSet") ||
		!strings.Contains(told[0], "statefulset/wait.go:63") || !strings.Contains(told[0], "timed out") {
		t.Errorf("told %q", told)
	}
	r := p.result()
	if r.Tests != 10 || r.Passed != 9 || r.Skipped != 1 || len(r.Failed) != 1 || r.Failed[0].Seconds != 602.5 ||
		r.Seconds != now.Sub(time.Unix(0, 0)).Seconds() {
		t.Errorf("%+v", r)
	}
}

func TestNamesOfTestsAreWhole(t *testing.T) {
	const name = "[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should perform canary " +
		"updates and phased rolling updates of template modifications [Conformance]"
	if got, want := withoutTags(name),
		"StatefulSet Basic StatefulSet functionality should perform canary updates and phased rolling updates of "+
			"template modifications"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoEstimateForTheLastTests: the slowest tests are the last ones, so that
// the mean time of the others says nothing about them.
func TestNoEstimateForTheLastTests(t *testing.T) {
	now := time.Unix(0, 0)
	p := newProgress(40, func() time.Time { return now }, nil, nil)
	p.counts.Passed, p.running, now = 30, []string{"a", "b"}, now.Add(5*time.Minute)
	if got, want := p.line(), "30 of 40, 30 passed, 0 failed, 100s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.counts.Passed = 38
	if got, want := p.line(), "38 of 40, 38 passed, 0 failed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSuiteChoosesTests(t *testing.T) {
	for want, s := range map[string]Suite{
		"--label-filter=!Serial && !Disruptive && !Flaky && Conformance": {},
		"--label-filter=Serial && !Flaky && Conformance":                 {Serial: true},
		"--label-filter=Serial && !Flaky":                                {Serial: true, Focus: "x"},
	} {
		if got := s.Choice("--"); got[0] != want || (s.Focus != "") != (len(got) == 2) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
