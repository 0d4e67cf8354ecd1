// Package offline carries images to where there is no internet: it writes
// them into one file, the bundle, checks it, and loads it into the stores of a
// host.
//
// A bundle is an OCI image layout in a tar, compressed with zstd, so docker,
// containerd, skopeo and crane read it. It is made of many zstd frames, each
// of whole tar members, and says in its first member where each frame lies:
//
//	┌ frame ──────────────────────────────────┐┌ frame ───┐┌ frame ───┐ ┌ frame ┐
//	│ kube-bootstrap.json index.json oci-layout││ one blob ││ one blob │…│  end  │
//	└─────────────────────────────────────────┘└──────────┘└──────────┘ └───────┘
//
// So looking reads a few kilobytes, and a host takes only the blobs of its own
// architecture that it lacks, for several stores at the same time.
package offline

import (
	"fmt"
	"path"
	"slices"
	"strings"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

const (
	manifestName   = "kube-bootstrap.json"
	formatVersion  = 1
	recipe         = 2 // counts changes to how a bundle is written
	manifestLimit  = 8 << 20
	blobLimit      = 8 << 30
	window         = 32 << 20
	annotationName = "io.containerd.image.name"
)

// Manifest is the first member of a bundle: what it holds and where.
type Manifest struct {
	Format   int                    `json:"format"`
	Versions image.Versions         `json:"versions"`
	Key      string                 `json:"key"` // changes with anything that went in
	Images   []Entry                `json:"images"`
	Plugins  map[string]Plugins     `json:"plugins"` // the CNI plugins, by architecture
	Blobs    map[digest.Digest]Blob `json:"blobs"`
}

// Entry is one image, for all architectures.
type Entry struct {
	image.Image
	Index    digest.Digest      `json:"index"`
	Variants map[string]Variant `json:"variants"` // by architecture
}

// Variant is an image for one architecture.
type Variant struct {
	Manifest digest.Digest   `json:"manifest"`
	Config   digest.Digest   `json:"config"`
	Layers   []digest.Digest `json:"layers"` // of the plain tar: they are also the diff IDs
	Parts    []image.Part    `json:"parts"`
}

// Plugins are files of a layer that belong into a directory of the host.
type Plugins struct {
	Layer digest.Digest            `json:"layer"`
	Files map[string]digest.Digest `json:"files"` // by name
}

// Blob says where a blob lies.
type Blob struct {
	Size    int64 `json:"size"`
	FromEnd int64 `json:"fromEnd"` // where its frame begins, counted from the end of the bundle
	Packed  int64 `json:"packed"`  // size of the frame
}

func blobName(d digest.Digest) string { return path.Join("blobs", d.Algorithm().String(), d.Encoded()) }

// Archs lists the architectures of a bundle.
func (m Manifest) Archs() []string {
	var all []string
	for _, arch := range image.Archs {
		if len(m.Images) > 0 && m.Images[0].Variants[arch].Manifest != "" {
			all = append(all, arch)
		}
	}
	return all
}

// find returns the entry of a reference for an architecture.
func (m Manifest) find(ref, arch string) (Entry, error) {
	i := slices.IndexFunc(m.Images, func(e Entry) bool { return e.Ref == ref })
	if i < 0 {
		return Entry{}, fmt.Errorf("it is of Kubernetes %s and holds no image %s", m.Versions.Kubernetes, ref)
	}
	if _, ok := m.Images[i].Variants[arch]; !ok {
		return Entry{}, fmt.Errorf("it is for %s, not for %s", strings.Join(m.Archs(), ", "), arch)
	}
	return m.Images[i], nil
}

// validate finds what no bundle of ours has.
func (m Manifest) validate(fileSize int64) error {
	if m.Format != formatVersion {
		return fmt.Errorf("it has format %d, this program reads format %d", m.Format, formatVersion)
	}
	for d, b := range m.Blobs {
		if err := d.Validate(); err != nil {
			return fmt.Errorf("blob %q: %w", d, err)
		}
		if b.Size < 0 || b.Size > blobLimit || b.Packed <= 0 || b.Packed > b.FromEnd || b.FromEnd >= fileSize {
			return fmt.Errorf("blob %s lies outside of the file: it is cut short or damaged", d)
		}
	}
	for _, e := range m.Images {
		for arch, v := range e.Variants {
			for _, d := range append([]digest.Digest{e.Index, v.Manifest, v.Config}, v.Layers...) {
				if _, ok := m.Blobs[d]; !ok {
					return fmt.Errorf("image %s for %s: blob %s is missing", e.Ref, arch, d)
				}
			}
		}
	}
	for arch, p := range m.Plugins {
		if _, ok := m.Blobs[p.Layer]; !ok {
			return fmt.Errorf("CNI plugins for %s: blob %s is missing", arch, p.Layer)
		}
		for name := range p.Files {
			if name != path.Base(name) || name == ".." || name == "." {
				return fmt.Errorf("CNI plugin %q: not a file name", name)
			}
		}
	}
	return nil
}
