// Package bundle reads and writes bundles: files that contain the images of a cluster for hosts without access to the
// internet.
//
// A bundle is an OCI image layout in a tar archive that is compressed with zstd, so that docker, containerd, skopeo
// and crane read it. It consists of several zstd frames. Each contains whole tar members, and the first member records
// the position of all others:
//
//	┌ frame ──────────────────────┐┌ frame ────┐┌ frame ──────────┐  ┌ frame ┐
//	│ kube-bootstrap.json [.sig]   ││ manifests,││ layers of amd64, │… │  end  │
//	│ oci-layout index.json ...    ││ configs   ││ smallest first   │  │       │
//	└─────────────────────────────┘└───────────┘└─────────────────┘  └───────┘
//
// Listing the contents therefore reads a few kilobytes, and a host reads only the layers of its own architecture.
// These are in one frame because Go programs have much in common: each is compressed against all layers before it,
// which saves a third. The first member contains the digests of everything that follows, and so a signature of it
// covers the whole bundle.
//
// A blob passes these files on its way into containerd. Each box is a goroutine:
//
//	┌ one per bundle ────────┐      ┌ one per store ────┐      ┌ load step ─────────────────┐
//	│ framereader.go         │ blob │ archive.go        │ pipe │ imagestore/contentstore.go │
//	│  decompress, seek      │ data │  tar header, data │─────►│  import the archive        │
//	│ broadcast.go           │─────►│  Broadcast.copyTo │      └──────────────┬─────────────┘
//	│  each blob once,       │      │   waits until all │                pipe │
//	│  to all subscribers    │      │   blobs are sent  │      ┌ one per layer ▼────────────┐
//	└────────────────────────┘      └───────────────────┘      │ imagestore/streamedlayer.go│
//	                                                           │ imagestore/applier.go      │
//	                                                           │  unpack into a snapshot    │
//	                                                           └────────────────────────────┘
//
// The first goroutine calls back into archive.go, which writes the tar header into the pipe and returns the writer for
// the data of the blob.
package bundle

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

const (
	manifestName   = "kube-bootstrap.json"
	signatureName  = manifestName + ".sig"
	formatVersion  = 2
	recipeVersion  = 5 // must change if the same images result in another file
	signatureLimit = 4 << 10
	annotationName = "io.containerd.image.name"
)

// The largest sizes of a manifest and of any blob.
const (
	ManifestLimit = 8 << 20
	BlobLimit     = 8 << 30
)

// Manifest is the first member of a bundle. It describes all contents.
type Manifest struct {
	Format      int                      `json:"format"`
	Versions    image.Versions           `json:"versions"`
	Key         string                   `json:"key"` // changes with every input of the bundle
	Images      []MultiPlatformImage     `json:"images"`
	Plugins     map[string]Plugins       `json:"plugins"` // the CNI plugins, by architecture
	Tables      map[string]digest.Digest `json:"tables"`  // the members in which other tools look for images, by name
	Base        *Base                    `json:"base,omitempty"`
	Compression string                   `json:"packing"` // name of the compression
	Frames      []Frame                  `json:"frames"`
	Blobs       map[digest.Digest]Blob   `json:"blobs"`
}

// Base identifies another bundle, which contains the blobs that this one omits.
type Base struct {
	Kubernetes string        `json:"kubernetes"`
	Manifest   digest.Digest `json:"manifest"`
}

// MultiPlatformImage is an image for all architectures.
type MultiPlatformImage struct {
	image.Image
	Index     digest.Digest            `json:"index"`
	Platforms map[string]PlatformImage `json:"variants"` // by architecture
}

// References returns the references of images.
func References(images []MultiPlatformImage) (refs []string) {
	for _, i := range images {
		refs = append(refs, i.Ref)
	}
	return refs
}

// PlatformImage is an image for one architecture.
type PlatformImage struct {
	Manifest digest.Digest   `json:"manifest"`
	Config   digest.Digest   `json:"config"`
	Layers   []digest.Digest `json:"layers"` // uncompressed: the digests are also the diff IDs
	Parts    []cache.Part    `json:"parts"`
}

// Plugins are the files of a layer that a host needs in its CNI directory.
type Plugins struct {
	Layer digest.Digest            `json:"layer"`
	Files map[string]digest.Digest `json:"files"` // by name
}

// Frame is a zstd frame of the file. It can be decompressed by itself.
type Frame struct {
	OffsetFromEnd  int64         `json:"fromEnd"` // of its first byte; from the end of the file
	CompressedSize int64         `json:"packed"`
	Digest         digest.Digest `json:"sum"`
}

// Blob is the position of a blob.
type Blob struct {
	Size   int64 `json:"size"`
	Frame  int   `json:"frame,omitempty"`
	Offset int64 `json:"at,omitempty"`     // of the tar header, in the decompressed frame
	InBase bool  `json:"inBase,omitempty"` // omitted here
}

func blobName(d digest.Digest) string { return path.Join("blobs", d.Algorithm().String(), d.Encoded()) }

// Archs returns the architectures of a bundle.
func (m Manifest) Archs() (all []string) {
	for _, arch := range config.Arches {
		if len(m.Images) > 0 && m.Images[0].Platforms[arch].Manifest != "" {
			all = append(all, arch)
		}
	}
	return all
}

// Find returns the image of a reference for an architecture.
func (m Manifest) Find(ref, arch string) (MultiPlatformImage, error) {
	i := slices.IndexFunc(m.Images, func(i MultiPlatformImage) bool { return i.Ref == ref })
	if i < 0 {
		return MultiPlatformImage{}, fmt.Errorf("it is of Kubernetes %s and has no image %s", m.Versions.Kubernetes, ref)
	}
	if _, ok := m.Images[i].Platforms[arch]; !ok {
		return MultiPlatformImage{}, fmt.Errorf("it is for %s, not for %s", strings.Join(m.Archs(), ", "), arch)
	}
	return m.Images[i], nil
}

// validate returns the first violation of the format.
func (m Manifest) validate(fileSize int64) error {
	if m.Format != formatVersion {
		return fmt.Errorf("it has format %d, this program reads format %d; use the kube-bootstrap that made it, or "+
			"create it again", m.Format, formatVersion)
	}
	if m.Base != nil {
		if err := m.Base.Manifest.Validate(); err != nil {
			return fmt.Errorf("its base: %w", err)
		}
	}
	if err := m.validateFrames(fileSize); err != nil {
		return err
	}
	for d, b := range m.Blobs {
		if err := m.validateBlob(d, b); err != nil {
			return fmt.Errorf("blob %s: %w", d, err)
		}
	}
	for _, img := range m.Images {
		for arch, p := range img.Platforms {
			for _, d := range append([]digest.Digest{img.Index, p.Manifest, p.Config}, p.Layers...) {
				if _, ok := m.Blobs[d]; !ok {
					return fmt.Errorf("image %s for %s: blob %s is missing", img.Ref, arch, d)
				}
			}
		}
	}
	return m.validatePlugins()
}

// validateFrames requires that each frame starts where the one before ends: other tools would read the bytes in
// between, and this one would not.
func (m Manifest) validateFrames(fileSize int64) error {
	next := fileSize
	for i, f := range m.Frames {
		if f.CompressedSize <= 0 || f.CompressedSize > f.OffsetFromEnd || f.OffsetFromEnd > next ||
			(i == 0) == (f.OffsetFromEnd == next) {
			return fmt.Errorf("frame %d lies outside of its place: the bundle is cut short or damaged", i)
		}
		if err := f.Digest.Validate(); err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
		next = f.OffsetFromEnd - f.CompressedSize
	}
	return nil
}

func (m Manifest) validateBlob(d digest.Digest, b Blob) error {
	if err := d.Validate(); err != nil {
		return err
	}
	switch {
	case d.Algorithm() != digest.SHA256:
		return errors.New("its digest is not of sha256")
	case b.Size < 0 || b.Size > BlobLimit:
		return fmt.Errorf("it has %d bytes, more than the %d allowed", b.Size, int64(BlobLimit))
	case b.InBase && m.Base == nil:
		return errors.New("it lies in a base, but there is none")
	case !b.InBase && (b.Frame < 0 || b.Frame >= len(m.Frames) || b.Offset < 0):
		return errors.New("it lies in no frame")
	}
	return nil
}

func (m Manifest) validatePlugins() error {
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

// Holds reports whether the bundle has an image of this reference for any architecture.
func (m Manifest) Holds(ref string) bool {
	return slices.ContainsFunc(m.Images,
		func(i MultiPlatformImage) bool { return i.Ref == ref && len(i.Platforms) > 0 })
}
