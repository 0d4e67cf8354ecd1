// Package imagestore loads images into the image stores of a host: Docker
// engines and containerd.
//
// A store reads one archive, which is both a `docker save` archive and an OCI
// image layout:
//
//	archive ──► Docker: POST /images/load
//	        └─► containerd, all in this process:
//	              stagingStore    layers to the two below, the rest to containerd
//	              layerStream     layers into snapshots while they arrive
//	              layerApplier    layers that cannot be unpacked yet: from files without a name
//	              share           large files that Docker has: hard links to these
//	              ImageService    names of the images, when all are unpacked
package imagestore

import (
	"context"
	"io"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Target is an image store of this host.
type Target interface {
	// Kind returns which images belong into the store.
	Kind() image.Store
	// State compares what the store has under a reference with the image. A store
	// that does not exist has nothing.
	State(ctx context.Context, want RequiredImage) (Comparison, error)
	// Load loads all images of the archive that open opens.
	Load(ctx context.Context, open func() io.ReadCloser) error
	// Users returns the containers that prevent the removal of an image. It
	// returns none if the store does not answer.
	Users(ctx context.Context, ref string) ([]string, error)
	// Remove removes references. It ignores references that do not exist.
	Remove(ctx context.Context, refs []string) error
}

// RequiredImage is the content that a reference must have. A field is empty if it is
// unknown; without any field besides Ref, every content is accepted.
type RequiredImage struct {
	Ref      string
	Index    digest.Digest   // of the manifests of all architectures
	Manifest digest.Digest   // for the architecture of this host
	Config   digest.Digest   // named by Manifest
	Layers   []digest.Digest // uncompressed
}

// Comparison is the result of a comparison.
type Comparison int

// Absent, the same content, or another content.
const (
	Absent Comparison = iota
	Same
	Other
)
