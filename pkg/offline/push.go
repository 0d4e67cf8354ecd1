package offline

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// Push uploads all images of the bundle at path to a registry.
func Push(
	ctx context.Context, path string, to *registry.Registry, options ...bundle.Option,
) ([]artifact.Pushed, error) {
	b, err := bundle.Open(path, options...)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return artifact.Push(ctx, b, to)
}
