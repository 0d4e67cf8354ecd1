package cluster

import (
	"slices"
	"testing"
)

func TestReadReport(t *testing.T) {
	const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" time="12.5"><testsuite name="e2e" tests="4">
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="1"></testcase>
<testcase name="[It] [sig-node] a passes" status="passed" time="1"></testcase>
<testcase name="[It] [sig-node] b fails" status="failed" time="2"><failure message="boom" type="failed">here</failure></testcase>
<testcase name="[It] [sig-node] c is not meant" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>`
	result, err := readReport([]byte(report))
	if err != nil || result.Tests != 2 || result.Seconds != 12.5 || !slices.Equal(result.Failed, []string{"[sig-node] b fails"}) {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := readReport([]byte("<html")); err == nil {
		t.Error("something else is taken for a report")
	}
}

func TestSuiteChoosesTests(t *testing.T) {
	for want, s := range map[string]Suite{
		"--label-filter=!Serial && !Disruptive && !Flaky && Conformance": {},
		"--label-filter=Serial && !Flaky && Conformance":                 {Serial: true},
		"--label-filter=Serial && !Flaky":                                {Serial: true, Focus: "x"},
	} {
		if got := (&suiteRun{Suite: s}).choice("--"); got[0] != want || (s.Focus != "") != (len(got) == 2) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
