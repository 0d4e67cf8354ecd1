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

// manifest is YAML of the user's, by its path or URL. What was applied is kept:
// a second run must not depend on the user's file or on the internet. Its first
// line says where it came from.
type manifest struct {
	*Host
	from, kept string
}

// text reads a file of the user anew as long as it is there; what was
// downloaded stays as it was.
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

// check says what keeps it from being applied.
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

// applyManifest returns the step that applies a manifest, and saves it once the
// API server has accepted it. It has no Undo, because the objects disappear
// with the cluster.
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

// downloads are what was fetched in this run: what is applied is what was
// checked.
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
