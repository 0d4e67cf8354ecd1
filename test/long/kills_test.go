//go:build e2e

package long

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// kills walks the plans on bare hosts: each run is killed when the next step
// starts that none was killed in before, until a run comes to its end.
func kills(t *testing.T, master, worker hosts.Machine, bundle string) {
	t.Helper()
	const run = "kube-bootstrap master --bundle "
	interrupted(t, master, run+bundle)
	clusters.KillEachStep(t, master, run+bundle)
	join := clusters.NewToken(t, master).Line(bundle)
	clusters.KillEachStep(t, worker, join)
	for _, m := range []hosts.Machine{master, worker} {
		if left := clusters.Broken(t, m); left != "" {
			t.Errorf("%s did not converge: %s", m.Name, left)
		}
	}
	wait.Until(t, time.Minute, "the cluster after all kills", func() error {
		return clusters.AllReady(t, master, time.Now().Add(-time.Minute), 2)
	})
}

// interrupted presses Ctrl-C in the middle of the first steps.
func interrupted(t *testing.T, m hosts.Machine, run string) {
	t.Helper()
	m.Sh(t, "rm -f /run/killed-in /run/progress.log; printf 'remember the settings\n' >/run/killed-in")
	started := time.Now()
	out := m.Sh(t, fmt.Sprintf(clusters.KillScript, run, "INT"))
	if took := time.Since(started); !strings.HasPrefix(out, "130 ") || took > time.Minute {
		t.Errorf("interrupted: %q after %s", out, took)
	}
	if log := m.Sh(t, "tail -3 /run/progress.log"); !strings.Contains(log, "run the same command again") {
		t.Errorf("interrupted, it does not say how to go on:\n%s", log)
	}
}
