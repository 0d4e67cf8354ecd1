//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// kills walks the plans on bare hosts: each run is killed when the next step
// starts that none was killed in before, until a run comes to its end.
func kills(t *testing.T, master, worker machine, bundle string) {
	t.Helper()
	const run = "kube-bootstrap master --bundle "
	interrupted(t, master, run+bundle)
	killEachStep(t, master, run+bundle)
	join := newToken(t, master).line(bundle)
	killEachStep(t, worker, join)
	for _, m := range []machine{master, worker} {
		if left := broken(t, m); left != "" {
			t.Errorf("%s did not converge: %s", m.name, left)
		}
	}
	eventually(t, time.Minute, "the cluster after all kills", func() error {
		return allReady(t, master, time.Now().Add(-time.Minute), 2)
	})
}

// killScript runs a command with its progress as JSON, and kills it as soon as
// a step starts that is not in the list of those it was killed in. It prints
// the step's name, or how the command ended.
const killScript = `
touch /run/killed-in; rm -f /run/progress; mkfifo /run/progress
%s --progress json 2>/run/progress >/dev/null & pid=$!
while read -r line; do
	echo "$line" >>/run/progress.log
	case $line in *'"kind":"started"'*) ;; *) continue;; esac
	step=$(printf %%s "$line" | sed 's/.*"step":"\([^"]*\)".*/\1/')
	[ "$step" = preflight ] && continue
	grep -qxF "$step" /run/killed-in && continue
	kill -%s $pid
	echo "$step" >>/run/killed-in
	cat >>/run/progress.log
	wait $pid; echo "$? $step"
	exit
done </run/progress
wait $pid; echo "$? end"`

func killEachStep(t *testing.T, m machine, run string) {
	t.Helper()
	m.sh(t, "rm -f /run/killed-in /run/progress.log")
	for range 60 {
		started := time.Now()
		out := m.sh(t, fmt.Sprintf(killScript, run, "KILL"))
		code, step, _ := strings.Cut(out, " ")
		t.Logf("%s: %s after %s", m.name, out, time.Since(started).Round(time.Second/10))
		switch {
		case step == "end" && code == "0":
			m.sh(t, "rm -f /run/killed-in /run/progress /run/progress.log")
			return
		case step == "end":
			t.Fatalf("%s does not converge after a kill:\n%s", m.name, m.sh(t, "tail -30 /run/progress.log"))
		case code == "0": // the last steps may be quicker than the signal
		case code != "137":
			t.Fatalf("killed in %q, exit code %s", step, code)
		}
	}
	t.Fatalf("%s: no end after 60 kills", m.name)
}

// interrupted presses Ctrl-C in the middle of the first steps.
func interrupted(t *testing.T, m machine, run string) {
	t.Helper()
	m.sh(t, "rm -f /run/killed-in /run/progress.log; printf 'remember the settings\n' >/run/killed-in")
	started := time.Now()
	out := m.sh(t, fmt.Sprintf(killScript, run, "INT"))
	if took := time.Since(started); !strings.HasPrefix(out, "130 ") || took > time.Minute {
		t.Errorf("interrupted: %q after %s", out, took)
	}
	if log := m.sh(t, "tail -3 /run/progress.log"); !strings.Contains(log, "run the same command again") {
		t.Errorf("interrupted, it does not say how to go on:\n%s", log)
	}
}
