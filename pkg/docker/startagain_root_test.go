//go:build root

package docker_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRunWhileContainerdRestarts kills the containerd of a Docker, which starts it again,
// just before a container starts.
func TestRunWhileContainerdRestarts(t *testing.T) {
	engine, socket := dockertest.Start(t)
	const name = "kube-bootstrap-test-start"
	c := dockertest.Sleeper(t, engine, name)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(socket), "containerd.pid"))
	must.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must.NoError(t, err)
	must.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	must.NoError(t, engine.Run(t.Context(), c))
	if _, running, err := engine.Process(t.Context(), name); err != nil || !running {
		t.Errorf("running %t, %v", running, err)
	}
	must.NoError(t, engine.Remove(t.Context(), name))
}
