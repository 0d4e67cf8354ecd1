package plan

import (
	"bytes"
	"context"
	"os"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// manifest is a YAML file of the user, given by path or URL. A copy of it is
// saved once it was applied, because a second run must not depend on the
// user's file or on the internet. The first line of the copy is its origin.
type manifest struct {
	*Host
	from, kept string
}

// text returns the manifest: the saved copy of a download, and otherwise the
// user's file, or the saved copy if that cannot be read.
func (m manifest) text() ([]byte, error) {
	kept, err := m.Files.Read(m.kept)
	isKept := err == nil && bytes.HasPrefix(kept, m.origin())
	if isKept && config.IsURL(m.from) {
		return kept, nil
	}
	data, err := m.fetch()
	if err != nil && isKept {
		return kept, nil
	}
	return append(m.origin(), data...), err
}

func (m manifest) fetch() ([]byte, error) {
	if !config.IsURL(m.from) {
		return os.ReadFile(m.from)
	}
	return m.downloads.get(m.limited(context.Background()), m.from)
}

func (m manifest) origin() []byte { return []byte("# from " + m.from + "\n") }

// check returns an error if the manifest cannot be applied.
func (m manifest) check() error {
	data, err := m.text()
	if err != nil {
		return err
	}
	return addon.CheckManifest(data)
}

func (m manifest) keep() error {
	data, err := m.text()
	if err != nil {
		return err
	}
	return m.Files.Put([]host.File{{Path: m.kept, Data: data}})
}

// applyManifest returns the step that applies a manifest and saves a copy
// once the API server has accepted it. Undo only removes the copy, because
// the objects disappear with the cluster.
func (h *Host) applyManifest(name string, m manifest) step.Step {
	s := h.addons().ApplyManifest(name, m.text)
	apply := s.Apply
	s.Apply = func(ctx context.Context) error {
		if err := apply(ctx); err != nil {
			return err
		}
		return m.keep()
	}
	s.Undo = func(context.Context) error { return h.Files.Drop(m.kept) }
	return s
}

// downloads caches the downloads of a run, so that the checked manifest is also
// the applied manifest.
type downloads struct{ texts sync.Map } // by URL

func (d *downloads) get(ctx context.Context, from string) ([]byte, error) {
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
