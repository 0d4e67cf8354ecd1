//go:build root

package process

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestEndIgnoresOtherUsers: a user could otherwise start processes faster than they are ended, and
// so keep root from turning the host down.
func TestEndIgnoresOtherUsers(t *testing.T) {
	const nobody = 65534
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "while :; do sleep 0.01; done", "one", t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	must.NoError(t, cmd.Start())
	must.NoError(t, End(t.Context(), 100*time.Millisecond, func(args []string) bool { return slices.Contains(args, t.Name()) }))
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil || len(processes(func(args []string) bool { return slices.Contains(args, t.Name()) })) > 0 {
		t.Errorf("the process of another user has ended: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
