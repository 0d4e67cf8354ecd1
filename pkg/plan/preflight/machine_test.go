package preflight

import (
	"runtime"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestClock(t *testing.T) {
	for now, bad := range map[string]bool{
		"1970-01-01T00:00:30Z": true, "2025-12-31T23:59:59Z": true, "2026-01-02T00:00:00Z": false,
		"2040-06-01T00:00:00Z": false, "2106-02-07T06:28:15Z": true,
	} {
		at, err := time.Parse(time.RFC3339, now)
		must.NoError(t, err)
		problems := step.Problems(clockProblemAt(at))
		if (len(problems) == 1 && problems[0].Name == "clock") != bad {
			t.Errorf("%s: got %v", now, problems)
		}
	}
}

func TestArch(t *testing.T) {
	for arch, bad := range map[string]bool{runtime.GOARCH: false, "sparc": true} {
		h := &local.Host{}
		h.Config.Arch = arch
		problems := step.Problems(archProblem(t.Context(), request{Host: h}))
		if (len(problems) == 1 && problems[0].Name == "arch") != bad {
			t.Errorf("%s: got %v", arch, problems)
		}
	}
}
