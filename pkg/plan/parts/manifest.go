package parts

import (
	"bytes"
	"context"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Manifest is a YAML file of the user, given by path or URL. A copy of it is
// saved once it was applied, because a second run must not depend on the
// user's file or on the internet. The first line of the copy is its origin.
type Manifest struct {
	*local.Host
	from, kept string
}

// text returns the manifest: the saved copy of a download, and otherwise the
// user's file, or the saved copy if that cannot be read.
func (m Manifest) text() ([]byte, error) {
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

func (m Manifest) fetch() ([]byte, error) {
	if !config.IsURL(m.from) {
		return os.ReadFile(m.from)
	}
	return m.Downloads.Get(m.Limited(context.Background()), m.from)
}

func (m Manifest) origin() []byte { return []byte("# from " + m.from + "\n") }

// Check returns an error if the manifest cannot be applied.
func (m Manifest) Check() error {
	data, err := m.text()
	if err != nil {
		return err
	}
	return addon.CheckManifest(data)
}

func (m Manifest) keep() error {
	data, err := m.text()
	if err != nil {
		return err
	}
	return m.Files.Put([]host.File{{Path: m.kept, Data: data}})
}

// ApplyManifest returns the step that applies a manifest and saves a copy
// once the API server has accepted it. Undo only removes the copy, because
// the objects disappear with the cluster.
func ApplyManifest(h *local.Host, name string, m Manifest) step.Step {
	s := Addons(h).ApplyManifest(name, m.text)
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
