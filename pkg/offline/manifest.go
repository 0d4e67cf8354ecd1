// Package offline carries images to where there is no internet: it writes
// them into one file, the bundle, checks it, and loads it into the stores of a
// host.
//
// A bundle is an OCI image layout in a tar, compressed with zstd, so docker,
// containerd, skopeo and crane read it. It is made of several zstd frames, each
// of whole tar members, and says in its first member where each of them lies:
//
//	┌ frame ──────────────────────┐┌ frame ────┐┌ frame ──────────┐  ┌ frame ┐
//	│ kube-bootstrap.json [.sig]   ││ manifests,││ layers of amd64, │… │  end  │
//	│ oci-layout index.json ...    ││ configs   ││ smallest first   │  │       │
//	└─────────────────────────────┘└───────────┘└─────────────────┘  └───────┘
//
// So looking reads a few kilobytes, and a host reads the layers of its own
// architecture only. These lie in one frame because Go programs have much in
// common: each is compressed against all those before it, which saves a third.
// The first member has the digest of everything that follows, which makes it
// the one that is signed.
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
	signatureName  = manifestName + ".sig"
	formatVersion  = 2
	recipe         = 5 // counts changes to how a bundle is written
	manifestLimit  = 8 << 20
	signatureLimit = 4 << 10
	blobLimit      = 8 << 30
	window         = 128 << 20
	annotationName = "io.containerd.image.name"
)

// Manifest is the first member of a bundle: what it holds and where.
type Manifest struct {
	Format   int                      `json:"format"`
	Versions image.Versions           `json:"versions"`
	Key      string                   `json:"key"` // changes with anything that went in
	Images   []Entry                  `json:"images"`
	Plugins  map[string]Plugins       `json:"plugins"` // the CNI plugins, by architecture
	Tables   map[string]digest.Digest `json:"tables"`  // the members by which other tools find the images
	Base     *Base                    `json:"base,omitempty"`
	Packing  string                   `json:"packing"` // what compressed it
	Frames   []Frame                  `json:"frames"`
	Blobs    map[digest.Digest]Blob   `json:"blobs"`
}

// Base is another bundle, which has those blobs that are left out here.
type Base struct {
	Kubernetes string        `json:"kubernetes"`
	Manifest   digest.Digest `json:"manifest"`
}

// Entry is one image, for all architectures.
type Entry struct {
	image.Image
	Index    digest.Digest      `json:"index"`
	Variants map[string]Variant `json:"variants"` // by architecture
}

func references(entries []Entry) []string {
	var refs []string
	for _, e := range entries {
		refs = append(refs, e.Ref)
	}
	return refs
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

// Frame is a part of the file that is read by itself.
type Frame struct {
	FromEnd int64         `json:"fromEnd"` // where it begins, counted from the end of the bundle
	Packed  int64         `json:"packed"`  // its size in the file
	Sum     digest.Digest `json:"sum"`
}

// Blob says where a blob lies.
type Blob struct {
	Size   int64 `json:"size"`
	Frame  int   `json:"frame,omitempty"`
	At     int64 `json:"at,omitempty"`     // of its tar header, in the plain frame
	InBase bool  `json:"inBase,omitempty"` // left out here
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
