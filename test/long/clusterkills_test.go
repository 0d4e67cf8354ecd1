//go:build e2e

package long

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// clusterUser is the user of a cluster of containers, with the tests of this package.
type clusterUser struct{ localcluster.User }

// TestClusterKills kills fifty runs at any moment. The next one finishes, and
// clean leaves the machine as it was.
func TestClusterKills(t *testing.T) {
	l := clusterUser{localcluster.User{Cluster: "e2e-k", Subnet: "10.214.0.0/16", Dir: t.TempDir()}}
	before := l.World(t)
	t.Cleanup(func() {
		_, _ = l.Try(context.Background(), "kube-bootstrap cluster clean --yes") // it is gone unless the test failed
	})
	for range 4 {
		l.interruptedAt(t, "boot e2e-k-worker-1", rand.N(300*time.Millisecond))
		l.LeavesNothing(t, "interrupted, it", before)
		l.Sh(t, "! docker volume ls -q | grep kube-bootstrap.disk.e2e-k")
	}

	const clean = "kube-bootstrap cluster clean --yes"
	l.killed(t, bringUp, clean, 6, 10*time.Second)
	l.killed(t, clean, begin, 3, time.Second)
	l.cleaned(t)
	l.LeavesNothing(t, "clean of what was begun", before)

	l.killed(t, bringUp, clean, 6, 20*time.Second)
	l.Sh(t, bringUp)
	l.killed(t, "kube-bootstrap cluster snapshot save half --progress none",
		"kube-bootstrap cluster snapshot remove half --yes", 8, 4*time.Second)
	l.Sh(t, bringUp+" && kube-bootstrap node status")
	l.Sh(t, "kube-bootstrap cluster snapshot remove half --yes || kube-bootstrap cluster snapshot save half && "+
		"kube-bootstrap cluster snapshot remove half --yes")
	const add, remove = "kube-bootstrap node add --name more --progress none", "kube-bootstrap node remove more " +
		"--yes --force --progress none"
	l.killed(t, add, remove, 8, 8*time.Second)
	l.Sh(t, isThere+" && kube-bootstrap node status || "+add)
	l.Sh(t, "kube-bootstrap node status")
	l.killed(t, remove, add, 6, 2*time.Second)
	l.Sh(t, remove+" || ! { "+isThere+"; }")
	l.killed(t, "kube-bootstrap cluster down", bringUp, 8, 2*time.Second)
	l.Sh(t, bringUp)
	hosts.Soon(t, time.Minute, "nodes of which some were off", l, "kube-bootstrap node status")
	l.killed(t, clean, begin, 5, time.Second)
	l.cleaned(t)
	l.LeavesNothing(t, "clean", before)
}

const (
	bringUp = "kube-bootstrap cluster up --workers 1 --progress none"
	begin   = "timeout -s KILL 6 " + bringUp + " || true"
	isThere = "kube-bootstrap node list -o json | grep -q e2e-k-more"
)

// cleaned removes the remains of the cluster. A run that was killed may already
// have removed all of it.
func (l clusterUser) cleaned(t *testing.T) {
	t.Helper()
	if out, err := l.Try(t.Context(), "kube-bootstrap cluster clean --yes 2>&1"); err != nil &&
		!strings.Contains(out, "does not exist") {
		t.Fatalf("clean: %v\n%s", err, out)
	}
}

// killed runs a command until it was killed so many times, at any moment. When
// it was done by then, another takes it back.
func (l clusterUser) killed(t *testing.T, command, back string, times int, within time.Duration) {
	t.Helper()
	for hits, tries := 0, 0; hits < times; tries++ {
		if tries == 3*times {
			t.Fatalf("%s: only %d kills have hit it", command, hits)
		}
		after := rand.N(within)
		err := l.signalled(t, command, syscall.SIGKILL, after)
		t.Logf("%s: killed after %s: %v", command, after.Round(time.Millisecond), err)
		switch {
		case err == nil, err.Error() == "exit status 3": // done, or refused because the one before was
			l.Sh(t, back)
		case err.Error() == "signal: killed":
			hits++
		default:
			t.Fatalf("%s, after others that were killed: %v", command, err)
		}
	}
}

// interruptedAt interrupts the creation of the cluster some time after a step has begun. The
// engine creates containers then.
func (l clusterUser) interruptedAt(t *testing.T, step string, after time.Duration) {
	t.Helper()
	cmd := l.command(t, strings.Replace(bringUp, "none", "plain", 1))
	cmd.Stderr = nil
	told, err := cmd.StderrPipe()
	must.NoError(t, errors.Join(err, cmd.Start()))
	begun := false
	for lines := bufio.NewScanner(told); lines.Scan(); {
		t.Log(lines.Text())
		if !begun && strings.Contains(lines.Text(), step) {
			begun = true
			time.Sleep(after)
			must.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		}
	}
	if err := cmd.Wait(); !begun || err == nil || err.Error() != "exit status 130" {
		t.Errorf("interrupted %s after %q began (%t): %v", after, step, begun, err)
	}
}

func (l clusterUser) command(t *testing.T, command string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec "+command)
	cmd.Env, cmd.Dir = append(os.Environ(), l.Env()...), l.Dir
	cmd.Stderr = t.Output()
	return cmd
}

func (l clusterUser) signalled(t *testing.T, command string, signal syscall.Signal, after time.Duration) error {
	t.Helper()
	cmd := l.command(t, command)
	must.NoError(t, cmd.Start())
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(signal) })
	defer timer.Stop()
	return cmd.Wait()
}
