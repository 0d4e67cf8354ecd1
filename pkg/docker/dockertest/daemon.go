// Package dockertest starts Docker daemons for tests.
package dockertest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// stopLimit is how long a daemon may take to stop, with its containerd.
const stopLimit = 20 * time.Second

// Start starts a Docker daemon without networks until the end of the test. It also returns
// the socket of the containerd that the daemon has started.
func Start(t *testing.T) (engine *docker.Engine, containerdSocket string) {
	t.Helper()
	// The path of a Unix socket must be short, which t.TempDir does not guarantee.
	dir, err := os.MkdirTemp("", "kb-docker-")
	must.NoError(t, err)
	socket := filepath.Join(dir, "d.sock")
	ctx, kill := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var log strings.Builder
	go func() {
		// In a network namespace of its own: with --bridge=none dockerd deletes the
		// link docker0 when it starts, which belongs to the Docker of the machine.
		_, err := host.Command{Stdout: &log, Stderr: &log,
			Args: []string{"unshare", "-n", "dockerd", "-H", "unix://" + socket, "-p", dir + "/pid",
				"--data-root", dir + "/data",
				"--exec-root", dir + "/exec", "--bridge=none", "--iptables=false", "--ip-masq=false",
				"--storage-driver=vfs"}}.Run(ctx)
		ended <- err
	}()
	t.Cleanup(func() {
		stop(t, dir, kill, ended)
		// A container in the network of the host leaves a mount.
		must.NoError(t, filesystem.UnmountBelow(dir))
		must.NoError(t, os.RemoveAll(dir))
	})
	engine = docker.Open(socket)
	probe := func(ctx context.Context) error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("dockerd ended: %v\n%s", err, log.String())
		default:
		}
		return engine.Answers(ctx)
	}
	must.NoError(t, step.Until(t.Context(), probe, nil))
	return engine, filepath.Join(dir, "exec/containerd/containerd.sock")
}

// stop kills dockerd only after a signal, by which it stops its containerd too.
func stop(t *testing.T, dir string, kill func(), ended <-chan error) {
	defer kill()
	pid, err := os.ReadFile(dir + "/pid")
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := host.Run(context.Background(), "kill", strings.TrimSpace(string(pid))); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(stopLimit):
		t.Error("dockerd does not stop")
	}
}

// Sleeper describes a container of an empty image that runs a program of this machine.
func Sleeper(t *testing.T, engine *docker.Engine, name string) docker.Container {
	t.Helper()
	const image = "kube-bootstrap-test-sleeper:1"
	must.NoError(t, engine.Images().Import(t.Context(), image, bytes.NewReader(make([]byte, 1024))))
	c := docker.Container{Name: name, Image: image, Command: []string{"/bin/sleep", "1000"}}
	for _, programs := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		c.Mounts = append(c.Mounts, docker.Mount{Source: programs, Target: programs, ReadOnly: true})
	}
	return c
}
