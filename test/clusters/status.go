package clusters

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// Missing are the lines of a status that name what is not up to date.
func Missing(status string) string {
	var lines []string
	for line := range strings.Lines(status) {
		if !strings.HasPrefix(line, "ok ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

type statusReport struct {
	UpToDate bool
	Steps    []struct {
		Step     string
		UpToDate bool
	}
}

// Broken is what `status -o json` says is not up to date.
func Broken(t *testing.T, m hosts.Machine) string {
	t.Helper()
	var report statusReport
	out := m.Sh(t, "kube-bootstrap status -o json || [ $? = 5 ]")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("status -o json: %v\n%s", err, out)
	}
	var names []string
	for _, s := range report.Steps {
		if !s.UpToDate {
			names = append(names, s.Step)
		}
	}
	if report.UpToDate != (len(names) == 0) {
		t.Errorf("upToDate is %t, not up to date are %q", report.UpToDate, names)
	}
	return strings.Join(names, ", ")
}
