package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// head is the beginning of a bundle. It is never modified.
type head struct {
	manifest  Manifest
	raw       []byte
	signature []byte
}

// heads contains the head of each path in its last version: a command opens its bundle for each image store, and the
// agent for each event.
var heads sync.Map // path → versionedHead

type versionedHead struct {
	version host.Identity
	head    head
}

func (b *Bundle) readHead() error {
	info, err := b.file.Stat()
	if err != nil {
		return fmt.Errorf("look at it: %w", err)
	}
	version := host.IdentityOf(info)
	b.size = info.Size()
	if kept, ok := heads.Load(b.Path); ok && kept.(versionedHead).version == version {
		h := kept.(versionedHead).head
		b.Manifest, b.raw, b.signature = h.manifest, h.raw, h.signature
		return nil
	}
	if err := b.decodeHead(io.NewSectionReader(b.file, 0, b.size)); err != nil {
		return err
	}
	heads.Store(b.Path, versionedHead{version, head{b.Manifest, b.raw, b.signature}})
	return nil
}

func (b *Bundle) decodeHead(from io.Reader) error {
	// One worker: more would read beyond the head.
	decoder, err := compression.NewDecoder(from, 1)
	if err != nil {
		return err
	}
	defer decoder.Close()
	archive := tar.NewReader(decoder)
	manifest, err := readManifest(archive)
	if err != nil {
		return err
	}
	if err := b.parse(manifest, b.size); err != nil {
		return err
	}
	h, err := archive.Next()
	if err != nil || h.Name != signatureName {
		return nil // Verify checks the other members
	}
	b.signature, err = readMember(h, archive, signatureLimit)
	return err
}

func readManifest(archive *tar.Reader) ([]byte, error) {
	h, err := archive.Next()
	if err != nil {
		return nil, fmt.Errorf("not a bundle, or a damaged bundle: %w", err)
	}
	if h.Name != manifestName || h.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("not a bundle of kube-bootstrap: it begins with %q, not with %s", h.Name, manifestName)
	}
	return readMember(h, archive, ManifestLimit)
}

// parse reads and validates the manifest of a file of that size.
func (b *Bundle) parse(manifest []byte, fileSize int64) error {
	b.raw = manifest
	if err := DecodeStrict(manifest, &b.Manifest); err != nil {
		return fmt.Errorf("read %s: %w; use the kube-bootstrap that made the bundle, or create it again",
			manifestName, err)
	}
	return b.Manifest.validate(fileSize)
}

// DecodeStrict decodes JSON and refuses unknown fields.
func DecodeStrict(data []byte, value any) error {
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	return strict.Decode(value)
}

// readMember reads a small member into memory.
func readMember(h *tar.Header, r io.Reader, limit int64) ([]byte, error) {
	if h.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d allowed", h.Name, h.Size, limit)
	}
	data, err := io.ReadAll(r)
	return data, step.Wrap(err, "read %s: it is cut short or damaged", h.Name)
}
