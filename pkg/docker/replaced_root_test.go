//go:build root

package docker

import (
	"os"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestADirectoryThatWasReplaced: a container goes on to see the directory that
// was removed, so it is restarted.
func TestADirectoryThatWasReplaced(t *testing.T) {
	const name = "kube-bootstrap-test-replaced"
	engine, image := emptyImage(t, name)
	dir := t.TempDir() + "/seen"
	c := Container{
		Name: name, Image: image, Command: []string{"/bin/sleep", "600"},
		Mounts: append(programs(), Mount{Source: dir, Target: "/seen"}),
	}
	for _, replace := range []bool{false, true} {
		if err := os.RemoveAll(dir); err != nil && replace {
			t.Fatal(err)
		}
		must.NoError(t, os.Mkdir(dir, 0o755))
		before := pidOf(t, engine, name)
		diff, err := engine.Running(t.Context(), c)
		if len(diff) != 1 || err != nil || replace != strings.Contains(diff[0], dir+" was removed or replaced") {
			t.Errorf("replaced %t: %q, %v", replace, diff, err)
		}
		must.NoError(t, engine.Run(t.Context(), c))
		if diff, err := engine.Running(t.Context(), c); len(diff) > 0 || err != nil {
			t.Errorf("after Run: %q, %v", diff, err)
		}
		if pidOf(t, engine, name) == before {
			t.Error("it was not restarted")
		}
	}
	before := pidOf(t, engine, name)
	if err := engine.Run(t.Context(), c); err != nil || pidOf(t, engine, name) != before {
		t.Errorf("a second Run restarted it, or: %v", err)
	}
}

func pidOf(t *testing.T, engine *Engine, name string) int {
	t.Helper()
	now, err := engine.ContainerInspect(t.Context(), name, client.ContainerInspectOptions{})
	if err != nil {
		return 0
	}
	return now.Container.State.Pid
}
