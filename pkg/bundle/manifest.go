// Package bundle reads and writes bundles: files that contain the images of a
// cluster for hosts without access to the internet.
//
// A bundle is an OCI image layout in a tar archive that is compressed with zstd,
// so that docker, containerd, skopeo and crane read it. It consists of several
// zstd frames. Each contains whole tar members, and the first member records the
// position of all others:
//
//	┌ frame ──────────────────────┐┌ frame ────┐┌ frame ──────────┐  ┌ frame ┐
//	│ kube-bootstrap.json [.sig]   ││ manifests,││ layers of amd64, │… │  end  │
//	│ oci-layout index.json ...    ││ configs   ││ smallest first   │  │       │
//	└─────────────────────────────┘└───────────┘└─────────────────┘  └───────┘
//
// Listing the contents therefore reads a few kilobytes, and a host reads only
// the layers of its own architecture. These are in one frame because Go programs
// have much in common: each is compressed against all layers before it, which
// saves a third. The first member contains the digests of everything that
// follows, and so a signature of it covers the whole bundle.
//
// A blob passes these files on its way into containerd. Each box is a goroutine:
//
//	┌ one per bundle ────────┐      ┌ one per store ────┐      ┌ load step ─────────────────┐
//	│ framereader.go         │ blob │ archive.go        │ pipe │ imagestore/containerd.go   │
//	│  decompress, seek      │ data │  tar header, data │─────►│  import, unpack, name      │
//	│ broadcast.go           │─────►│  Broadcast.copyTo │      │ imagestore/contentstore.go │
//	│  each blob once,       │      │   waits until all │      │  layer into a file         │
//	│  to all subscribers    │      │   blobs are sent  │      │ imagestore/applier.go      │
//	└────────────────────────┘      └───────────────────┘      │  layer into a snapshot     │
//	                                                           └────────────────────────────┘
//
// The first goroutine calls back into archive.go, which writes the tar header
// into the pipe and returns the writer for the data of the blob.
package bundle

import (
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
	Images      []Image                  `json:"images"`
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

// Image is an image for all architectures.
type Image struct {
	image.Image
	Index     digest.Digest            `json:"index"`
	Platforms map[string]PlatformImage `json:"variants"` // by architecture
}

// References returns the references of images.
func References(images []Image) []string {
	var refs []string
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
func (m Manifest) Archs() []string {
	var all []string
	for _, arch := range config.Arches {
		if len(m.Images) > 0 && m.Images[0].Platforms[arch].Manifest != "" {
			all = append(all, arch)
		}
	}
	return all
}

// Find returns the image of a reference, which must be there for the
// architecture.
func (m Manifest) Find(ref, arch string) (Image, error) {
	i := slices.IndexFunc(m.Images, func(i Image) bool { return i.Ref == ref })
	if i < 0 {
		return Image{}, fmt.Errorf("it is of Kubernetes %s and holds no image %s", m.Versions.Kubernetes, ref)
	}
	if _, ok := m.Images[i].Platforms[arch]; !ok {
		return Image{}, fmt.Errorf("it is for %s, not for %s", strings.Join(m.Archs(), ", "), arch)
	}
	return m.Images[i], nil
}
