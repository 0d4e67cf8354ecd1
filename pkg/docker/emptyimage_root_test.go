//go:build root

package docker

import (
	"bytes"
	"context"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// emptyImage returns the engine of this machine and an image without files, for a container of this
// name. The end of the test removes both.
func emptyImage(t *testing.T, name string) (engine *Engine, image string) {
	t.Helper()
	engine, err := Choice{}.Open()
	must.NoError(t, err)
	image = name + ":1"
	must.NoError(t, engine.Images().Import(t.Context(), image, bytes.NewReader(make([]byte, 1024)))) // an empty tar
	t.Cleanup(func() {
		_ = engine.Remove(context.Background(), name)
		_ = engine.Images().Remove(context.Background(), image)
	})
	return engine, image
}

// programs are mounts of the programs of this machine, for a container of an empty image.
func programs() (all []Mount) {
	for _, dir := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		all = append(all, Mount{Source: dir, Target: dir, ReadOnly: true})
	}
	return all
}
