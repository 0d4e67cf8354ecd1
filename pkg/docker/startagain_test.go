package docker_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRunWhileContainerdRestarts kills the containerd of a Docker, which starts it again,
// just before a container starts.
func TestRunWhileContainerdRestarts(t *testing.T) {
	engine, socket := dockertest.Start(t)
	const name = "kube-bootstrap-test-start"
	c := sleeper(t, engine, name)
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

// sleeper describes a container of an empty image that runs a program of this machine.
func sleeper(t *testing.T, engine *docker.Engine, name string) docker.Container {
	t.Helper()
	const image = "kube-bootstrap-test-sleeper:1"
	must.NoError(t, engine.Images().Import(t.Context(), image, bytes.NewReader(make([]byte, 1024))))
	c := docker.Container{Name: name, Image: image, Command: []string{"/bin/sleep", "1000"}}
	for _, programs := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		c.Mounts = append(c.Mounts, docker.Mount{Source: programs, Target: programs, ReadOnly: true})
	}
	return c
}
