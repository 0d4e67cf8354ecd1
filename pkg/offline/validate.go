package offline

import (
	"errors"
	"fmt"
	"path"

	digest "github.com/opencontainers/go-digest"
)

// validate finds what no bundle of ours has.
func (m Manifest) validate(fileSize int64) error {
	if m.Format != formatVersion {
		return fmt.Errorf("it has format %d, this program reads format %d; use the kube-bootstrap that made it, or make it anew", m.Format, formatVersion)
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
	for _, e := range m.Images {
		for arch, v := range e.Variants {
			for _, d := range append([]digest.Digest{e.Index, v.Manifest, v.Config}, v.Layers...) {
				if _, ok := m.Blobs[d]; !ok {
					return fmt.Errorf("image %s for %s: blob %s is missing", e.Ref, arch, d)
				}
			}
		}
	}
	return m.validatePlugins()
}

// validateFrames wants one behind the other: what lies between two would be
// read by other tools, and not by this one.
func (m Manifest) validateFrames(fileSize int64) error {
	next := fileSize
	for i, f := range m.Frames {
		if f.Packed <= 0 || f.Packed > f.FromEnd || f.FromEnd > next || (i == 0) == (f.FromEnd == next) {
			return fmt.Errorf("frame %d lies outside of its place: the bundle is cut short or damaged", i)
		}
		if err := f.Sum.Validate(); err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
		next = f.FromEnd - f.Packed
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
	case b.Size < 0 || b.Size > blobLimit:
		return fmt.Errorf("it has %d bytes, more than the %d allowed", b.Size, int64(blobLimit))
	case b.InBase && m.Base == nil:
		return errors.New("it lies in a base, but there is none")
	case !b.InBase && (b.Frame < 0 || b.Frame >= len(m.Frames) || b.At < 0):
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
