package bundle

import (
	"errors"
	"fmt"
	"path"

	digest "github.com/opencontainers/go-digest"
)

// validate returns the first violation of the format.
func (m Manifest) validate(fileSize int64) error {
	if m.Format != formatVersion {
		return fmt.Errorf("it has format %d, this program reads format %d; use the kube-bootstrap that made it, or create it again", m.Format, formatVersion)
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

// validateFrames requires that each frame starts where the one before ends:
// other tools would read the bytes in between, and this one would not.
func (m Manifest) validateFrames(fileSize int64) error {
	next := fileSize
	for i, f := range m.Frames {
		if f.CompressedSize <= 0 || f.CompressedSize > f.OffsetFromEnd || f.OffsetFromEnd > next || (i == 0) == (f.OffsetFromEnd == next) {
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
