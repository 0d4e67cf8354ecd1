package docker

import (
	"bytes"
	"context"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRemoveUnused: an image of a stopped container stays, without an error.
func TestRemoveUnused(t *testing.T) {
	engine, err := Choice{}.Open()
	must.NoError(t, err)
	const image, name = "kube-bootstrap-test-unused:1", "kube-bootstrap-test-unused"
	images := engine.Images()
	must.NoError(t, images.Import(t.Context(), image, bytes.NewReader(make([]byte, 1024))))
	t.Cleanup(func() {
		_ = engine.Remove(context.Background(), name)
		_ = images.Remove(context.Background(), image)
	})
	config := &container.Config{Image: image, Cmd: []string{"/none"}, Labels: map[string]string{OurLabel: "test"}}
	_, err = engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: name, Config: config})
	must.NoError(t, err)
	for _, used := range []bool{true, false} {
		must.NoError(t, images.RemoveUnused(t.Context(), image))
		if has, err := images.Has(t.Context(), image); err != nil || has != used {
			t.Errorf("used: %t, it is still there: %t, %v", used, has, err)
		}
		must.NoError(t, engine.Remove(t.Context(), name))
	}
}
