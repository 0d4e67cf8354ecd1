//go:build root

package docker

import (
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRemoveUnused: an image of a stopped container stays, without an error.
func TestRemoveUnused(t *testing.T) {
	const name = "kube-bootstrap-test-unused"
	engine, image := emptyImage(t, name)
	images := engine.Images()
	config := &container.Config{Image: image, Cmd: []string{"/none"}, Labels: map[string]string{OurLabel: "test"}}
	_, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: name, Config: config})
	must.NoError(t, err)
	for _, used := range []bool{true, false} {
		must.NoError(t, images.RemoveUnused(t.Context(), image))
		if has, err := images.Has(t.Context(), image); err != nil || has != used {
			t.Errorf("used: %t, it is still there: %t, %v", used, has, err)
		}
		must.NoError(t, engine.Remove(t.Context(), name))
	}
}
