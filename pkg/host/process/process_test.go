package process

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestEnd: one process ends after SIGTERM, one ignores it, and a process that is not
// meant continues.
func TestEnd(t *testing.T) {
	start := func(script string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "bash",
			append([]string{"-c", script + " while :; do sleep 0.01; done", "one"}, args...)...)
		must.NoError(t, cmd.Start())
		return cmd
	}
	polite, deaf, other := start("", "--of", t.Name()), start("trap '' TERM;", "--of", t.Name()),
		start("", "--of", "another")
	ended := make(chan error, 2)
	for _, cmd := range []*exec.Cmd{polite, deaf} {
		go func() { ended <- cmd.Wait() }()
	}
	must.NoError(t, End(t.Context(), 100*time.Millisecond, func(args []string) bool {
		return slices.Contains(args, t.Name())
	}))
	<-ended
	<-ended
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another one has ended: %v", err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
}

func TestMayHave(t *testing.T) {
	for bounding, want := range map[string]bool{"000001fffeffffff": false, "000001ffffffffff": true} {
		if got := mayHave(capSysResource, "Name:\tx\nCapBnd:\t"+bounding+"\n"); got != want {
			t.Errorf("%s: got %v", bounding, got)
		}
	}
}
