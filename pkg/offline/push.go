package offline

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// Push uploads all images of the bundle at path to a registry.
func Push(ctx context.Context, path string, to *registry.Registry, options ...bundle.Option) ([]bundle.Pushed, error) {
	b, err := bundle.Open(path, options...)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return b.Push(ctx, to)
}
