//go:build e2e && open

package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestFleetKills kills runs at any moment. The next one finishes, and clean
// leaves the machine as it was.
func TestFleetKills(t *testing.T) {
	l := fleetUser{cluster: "e2e-k", subnet: "10.214.0.0/16", dir: t.TempDir()}
	before := l.world(t)
	t.Cleanup(func() {
		_, _ = l.try(context.Background(), "kube-bootstrap cluster clean") // it is gone unless the test failed
	})
	const up = "kube-bootstrap cluster up --workers 1 --progress none"
	err := l.signalled(t, up, syscall.SIGINT, 4*time.Second)
	if err == nil || err.Error() != "exit status 130" {
		t.Errorf("interrupted: %v", err)
	}
	l.leavesNothing(t, "interrupted, it", before)

	l.killed(t, up, 4, 10*time.Second)
	l.killed(t, "kube-bootstrap cluster clean", 2, time.Second)
	l.sh(t, "kube-bootstrap cluster clean")
	l.leavesNothing(t, "clean of what was begun", before)

	l.killed(t, up, 2, 20*time.Second)
	l.sh(t, up)
	l.killed(t, "kube-bootstrap node add --name more --progress none", 3, 6*time.Second)
	l.sh(t, "kube-bootstrap node add --name more --progress none")
	l.sh(t, "kube-bootstrap node status")
	l.killed(t, "kube-bootstrap node remove more --progress none", 2, 3*time.Second)
	l.sh(t, "kube-bootstrap node remove more --force || kube-bootstrap node list -o json | { ! grep e2e-k-more; }")
	l.killed(t, "kube-bootstrap cluster down", 2, 2*time.Second)
	l.sh(t, up+" && kube-bootstrap node status")
	l.killed(t, "kube-bootstrap cluster clean", 3, time.Second)
	l.sh(t, "kube-bootstrap cluster clean")
	l.leavesNothing(t, "clean", before)
}

// killed runs a command several times and kills it at any moment.
func (l fleetUser) killed(t *testing.T, command string, times int, within time.Duration) {
	t.Helper()
	for range times {
		after := rand.N(within)
		err := l.signalled(t, command, syscall.SIGKILL, after)
		t.Logf("%s: killed after %s: %v", command, after.Round(time.Millisecond), err)
	}
}

func (l fleetUser) signalled(t *testing.T, command string, signal syscall.Signal, after time.Duration) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec "+command)
	cmd.Env, cmd.Dir = append(os.Environ(), l.env()...), l.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(signal) })
	defer timer.Stop()
	return cmd.Wait()
}
