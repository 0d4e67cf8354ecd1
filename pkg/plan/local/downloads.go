package local

import (
	"context"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Downloads caches the downloads of a run, so that the checked manifest is also
// the applied manifest.
type Downloads struct{ texts sync.Map } // by URL

// Get returns the content of a URL.
func (d *Downloads) Get(ctx context.Context, from string) ([]byte, error) {
	if text, ok := d.texts.Load(from); ok {
		return text.([]byte), nil
	}
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	text, err := addon.Download(ctx, from)
	if err == nil {
		d.texts.Store(from, text)
	}
	return text, err
}
