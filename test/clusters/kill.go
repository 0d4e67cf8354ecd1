package clusters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// KillIn kills a run as soon as that step starts, wherever else it would be.
func KillIn(t *testing.T, m hosts.Machine, run, step string) string {
	t.Helper()
	return m.Sh(t, `rm -f /run/progress; mkfifo /run/progress
`+run+` --progress json 2>/run/progress >/dev/null & pid=$!
while read -r line; do
	echo "$line" >>/run/progress.log
	case $line in *'"step":"`+step+`"'*'"kind":"started"'*|*'"kind":"started"'*'"step":"`+step+
		`"'*) kill -KILL $pid; cat >>/run/progress.log; break;; esac
done </run/progress
wait $pid; code=$?; rm -f /run/progress /run/progress.log; echo "$code `+step+`"`)
}

// KillScript runs a command with its progress as JSON, and kills it as soon as
// a step starts that is not in the list of those it was killed in. It prints
// the step's name, or how the command ended.
const KillScript = `
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

// KillEachStep runs a command until it succeeds. Each run is killed at the start of the next step.
func KillEachStep(t *testing.T, m hosts.Machine, run string) {
	t.Helper()
	m.Sh(t, "rm -f /run/killed-in /run/progress.log")
	for range 60 {
		started := time.Now()
		out := m.Sh(t, fmt.Sprintf(KillScript, run, "KILL"))
		code, step, _ := strings.Cut(out, " ")
		t.Logf("%s: %s after %s", m.Name, out, time.Since(started).Round(time.Second/10))
		switch {
		case step == "end" && code == "0":
			m.Sh(t, "rm -f /run/killed-in /run/progress /run/progress.log")
			return
		case step == "end":
			t.Fatalf("%s does not converge after a kill:\n%s", m.Name, m.Sh(t, "tail -30 /run/progress.log"))
		case code == "0": // the last steps may be quicker than the signal
		case code != "137":
			t.Fatalf("killed in %q, exit code %s", step, code)
		}
	}
	t.Fatalf("%s: no end after 60 kills", m.Name)
}
