//go:build root

package restart

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestContainersOverARestart: a paused container is paused again, a container that needs another one
// starts after it, swarm's tasks are left to swarm, and what does not start is named.
func TestContainersOverARestart(t *testing.T) {
	engine, _ := dockertest.Start(t)
	gone := t.TempDir() + "/gone"
	must.NoError(t, os.Mkdir(gone, 0o755))
	needs := func(hc *container.HostConfig) { hc.PidMode = "container:first" }
	for _, c := range []struct {
		name   string
		labels map[string]string
		change func(*container.HostConfig)
	}{
		{name: "first"}, {name: "second", change: needs}, {name: "paused"},
		{name: "task", labels: map[string]string{"com.docker.swarm.task": ""}},
		{name: "removed", change: func(hc *container.HostConfig) { hc.AutoRemove = true }},
		{name: "broken", change: func(hc *container.HostConfig) {
			hc.Mounts = []mount.Mount{{Type: mount.TypeBind, Source: gone, Target: "/gone"}}
		}},
	} {
		startOwn(t, engine, c.name, c.labels, c.change)
	}
	_, err := engine.ContainerPause(t.Context(), "paused", client.ContainerPauseOptions{})
	must.NoError(t, err)
	all, err := Running(t.Context(), engine)
	must.NoError(t, err)
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
		if c.Paused != (c.Name == "paused") || c.AutoRemove != (c.Name == "removed") {
			t.Errorf("%+v", c)
		}
	}
	if want := []string{"first", "second", "paused", "removed", "broken"}; !slices.Equal(names, want) {
		t.Errorf("running: %q, want %q", names, want)
	}
	_, err = engine.ContainerUnpause(t.Context(), "paused", client.ContainerUnpauseOptions{})
	must.NoError(t, err)
	must.NoError(t, Stop(t.Context(), engine, all))
	must.NoError(t, os.Remove(gone))
	slices.Reverse(all) // "second" before "first"
	failed := errors.Join(Start(t.Context(), engine, all)...)
	for _, part := range []string{"container broken: ", "`docker start broken`", "container removed: ", "--rm"} {
		if failed == nil || !strings.Contains(failed.Error(), part) {
			t.Errorf("%v does not contain %q", failed, part)
		}
	}
	if after, err := Running(t.Context(), engine); err != nil || len(after) != 3 ||
		!slices.ContainsFunc(after, func(c RunningContainer) bool { return c.Name == "paused" && c.Paused }) {
		t.Errorf("afterwards: %+v, %v", after, err)
	}
	must.NoError(t, Stop(t.Context(), engine, all))
}

// startOwn starts a container of the user, which ends at once when it is stopped.
func startOwn(
	t *testing.T, engine *docker.Engine, name string, labels map[string]string, change func(*container.HostConfig),
) {
	t.Helper()
	const image = "kube-bootstrap-test-restart:1"
	must.NoError(t, engine.Images().Import(t.Context(), image, bytes.NewReader(make([]byte, 1024))))
	hc := &container.HostConfig{
		NetworkMode: "host", Binds: []string{"/bin:/bin:ro", "/lib:/lib:ro", "/lib64:/lib64:ro", "/usr:/usr:ro"},
	}
	if change != nil {
		change(hc)
	}
	_, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Name: name, HostConfig: hc,
		Config: &container.Config{
			Image: image, Entrypoint: []string{"/bin/sleep", "1000"}, Labels: labels, StopSignal: "SIGKILL",
		},
	})
	must.NoError(t, err)
	_, err = engine.ContainerStart(t.Context(), name, client.ContainerStartOptions{})
	must.NoError(t, err)
}
