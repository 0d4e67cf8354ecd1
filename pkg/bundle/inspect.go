package bundle

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Wanted is what a bundle must contain. An empty field requires nothing.
type Wanted struct {
	Kubernetes string
	Archs      []string
}

// Report describes the contents of a bundle, and what it lacks.
type Report struct {
	Path           string         `json:"path"`
	Versions       image.Versions `json:"versions"`
	Archs          []string       `json:"architectures"`
	Images         []string       `json:"images"`
	Blobs          int            `json:"blobs"`
	Size           int64          `json:"size"`   // of all blobs
	CompressedSize int64          `json:"packed"` // of the file
	Signer         string         `json:"signer,omitempty"`
	Base           *Base          `json:"base,omitempty"`
	Missing        []string       `json:"missing,omitempty"`
}

// Report describes the bundle. Missing names all that a host needs in addition.
func (b *Bundle) Report(want Wanted) Report {
	m := b.Manifest
	r := Report{
		Path: b.Path, Versions: m.Versions, Archs: b.Archs(), CompressedSize: b.size, Signer: b.Signer(), Base: m.Base,
		Images: References(m.Images), Blobs: len(m.Blobs), Missing: b.missing(want),
	}
	for _, blob := range m.Blobs {
		r.Size += blob.Size
	}
	return r
}

func (b *Bundle) missing(want Wanted) (missing []string) {
	if want.Kubernetes != "" && want.Kubernetes != b.Manifest.Versions.Kubernetes {
		missing = append(missing, "Kubernetes "+want.Kubernetes+": it holds "+b.Manifest.Versions.Kubernetes)
	}
	if len(want.Archs) == 0 {
		want.Archs = b.Archs()
	}
	for _, arch := range want.Archs {
		if !slices.Contains(b.Archs(), arch) {
			missing = append(missing, "everything for "+arch)
			continue
		}
		missing = append(missing, b.Manifest.missingFor(arch)...)
	}
	if b.Manifest.Base != nil && b.base == nil {
		missing = append(missing, "what lies in its base, the bundle of Kubernetes "+b.Manifest.Base.Kubernetes)
	}
	return missing
}

func (m Manifest) missingFor(arch string) (missing []string) {
	for _, img := range image.Catalogue(m.Versions, "") {
		if _, err := m.Find(img.Ref, arch); err != nil {
			missing = append(missing, img.Ref+" for "+arch)
		}
	}
	for _, name := range image.CNIPlugins {
		if _, ok := m.Plugins[arch].Files[name]; !ok {
			missing = append(missing, "CNI plugin "+name+" for "+arch)
		}
	}
	return missing
}
