package hosts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// Shell is a machine or a user that runs scripts.
type Shell interface {
	Try(ctx context.Context, script string) (string, error)
}

// Typed runs a script that must succeed, and logs how long it took.
func Typed(t *testing.T, on Shell, script string) string {
	t.Helper()
	start := time.Now()
	out, err := on.Try(t.Context(), script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	t.Logf("%s: %s", strings.SplitN(script, "\n", 2)[0], time.Since(start).Round(time.Second/10))
	return out
}

// Soon runs a script on a machine or as a user until it succeeds.
func Soon(t *testing.T, limit time.Duration, what string, on Shell, script string) {
	t.Helper()
	wait.Until(t, limit, what, func() error { _, err := on.Try(t.Context(), script); return err })
}

// Says waits until a script prints want. Its first answers may come from before an effect that
// the cluster has only later: the rules of Services, or a program that has just started.
func Says(t *testing.T, limit time.Duration, what string, m Machine, script, want string) {
	t.Helper()
	wait.Until(t, limit, what, func() error {
		out, err := m.Try(t.Context(), script)
		if err == nil && out != want {
			err = fmt.Errorf("got %q, want %q", out, want)
		}
		return err
	})
}
