//go:build root

package docker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestWatch runs containers that end.
func TestWatch(t *testing.T) {
	engine, image := emptyImage(t, "kube-bootstrap-test-watch")
	for name, c := range map[string]struct {
		restart, script, want string
		before                int // restarts before the watch
	}{
		"again and again": {"unless-stopped", "echo unknown flag --x; exit 3", "the last time with exit code 3", 0},
		"for good":        {"no", "echo unknown flag --x; exit 3", "ended with exit code 3", 0},
		"it waits for others": {"unless-stopped", "[ -e /tmp/second ] && exec sleep 600; touch /tmp/second; exit 1", "",
			0},
		"it ended before": {"unless-stopped",
			"[ -e /tmp/4 ] && exec sleep 600; for n in 1 2 3 4; do [ -e /tmp/$n ] || { touch /tmp/$n; exit 1; }; done",
			"", 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := runShell(t, engine, image, c.restart, "sleep 0.2; mkdir -p /tmp; "+c.script)
			for restarts := 0; restarts < c.before; time.Sleep(50 * time.Millisecond) {
				now, err := engine.ContainerInspect(t.Context(), s.Name, client.ContainerInspectOptions{})
				must.NoError(t, err)
				restarts = now.Container.RestartCount
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			if c.want == "" {
				ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
			}
			defer cancel()
			err := s.Watch(ctx)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.HasSuffix(err.Error(), "unknown flag --x")) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// runShell runs a script in a container that contains only the programs of this machine.
func runShell(t *testing.T, engine *Engine, image, restart, script string) ManagedContainer {
	t.Helper()
	s := ManagedContainer{
		Docker: func() *Engine { return engine }, Name: "kube-bootstrap-test-watch",
		Container: func() (Container, error) {
			return Container{Name: "kube-bootstrap-test-watch", Image: image, Restart: restart, Mounts: programs(),
				Command: []string{"/bin/sh", "-c", script}}, nil
		},
	}
	must.NoError(t, s.Run(t.Context()))
	t.Cleanup(func() { _ = s.Remove(context.Background()) })
	return s
}

// TestTheReasonIsOfARunThatHasEnded reads it while the container runs, again and again.
func TestTheReasonIsOfARunThatHasEnded(t *testing.T) {
	engine, image := emptyImage(t, "kube-bootstrap-test-watch")
	s := runShell(t, engine, image, "unless-stopped", "echo starting; sleep 0.5; echo unknown flag --x; exit 3")
	for range 5 {
		for running := false; !running; time.Sleep(50 * time.Millisecond) {
			var err error
			_, running, err = s.StartedAt(t.Context())
			must.NoError(t, err)
		}
		if got := s.reason(t.Context()); got != "unknown flag --x" {
			t.Errorf("got %q", got)
		}
	}
}
