package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	digest "github.com/opencontainers/go-digest"
)

// A host can have a part of a bundle: the same file with the same manifest, and so the same signature, in which the
// frames of other architectures are holes. The positions in the manifest then hold for both.

// Section is a section of the file of a bundle.
type Section struct{ Offset, Size int64 }

// End returns the offset of the first byte behind the section.
func (s Section) End() int64 { return s.Offset + s.Size }

// OpenHead reads the head of the bundle of size bytes from a stream. The blobs of the bundle cannot be read.
func OpenHead(path string, from io.Reader, size int64, options ...Option) (*Bundle, error) {
	b := &Bundle{Path: path, size: size, broadcast: &Broadcast{}}
	b.fetch = func(digest.Digest) (io.ReadCloser, error) {
		return nil, errors.New("only the head of the bundle was read")
	}
	err := b.decodeHead(from)
	for _, option := range options {
		if err == nil {
			err = option(b)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	return b, nil
}

// PartFor returns the sections of the file that a host of an architecture needs, in order: the head, the frames of its
// images and the end. A layer that several architectures have in common is in the frame of the first one, which the
// others then need too.
func (b *Bundle) PartFor(arch string) (part []Section) {
	add := func(from, to int64) {
		if last := len(part) - 1; last >= 0 && part[last].End() == from {
			part[last].Size += to - from
		} else if to > from {
			part = append(part, Section{from, to - from})
		}
	}
	begin, end := b.Manifest.framesIn(b.size)
	add(0, begin)
	for _, frame := range b.Manifest.framesOf(arch) {
		at := b.size - b.Manifest.Frames[frame].OffsetFromEnd
		add(at, at+b.Manifest.Frames[frame].CompressedSize)
	}
	add(end, b.size)
	return part
}

// framesIn returns where the frames of a file of that size begin and end.
func (m Manifest) framesIn(fileSize int64) (begin, end int64) {
	if len(m.Frames) == 0 {
		return fileSize, fileSize
	}
	last := m.Frames[len(m.Frames)-1]
	return fileSize - m.Frames[0].OffsetFromEnd, fileSize - last.OffsetFromEnd + last.CompressedSize
}

// framesOf returns the frames with the blobs of an architecture, in order.
func (m Manifest) framesOf(arch string) []int {
	frames := map[int]bool{}
	for _, d := range m.blobsOf(m.Images, arch) {
		if blob, ok := m.Blobs[d]; ok && !blob.InBase {
			frames[blob.Frame] = true
		}
	}
	return slices.Sorted(maps.Keys(frames))
}

// Archs returns the architectures whose images are in the file.
func (b *Bundle) Archs() []string {
	return slices.DeleteFunc(b.Manifest.Archs(), func(arch string) bool { return !holds(b, arch) })
}

func holds(b *Bundle, arch string) bool {
	return b.file == nil || !slices.ContainsFunc(b.Manifest.framesOf(arch),
		func(frame int) bool { return isHole(b, frame) })
}

// zstdMagic begins every frame.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// isHole reports whether a frame was left out. A frame is there as a whole or not at all, so its beginning suffices;
// Check finds a damaged one.
func isHole(b *Bundle, frame int) bool {
	begin := make([]byte, len(zstdMagic))
	_, err := b.section(frame).ReadAt(begin, 0)
	return err == nil && bytes.Equal(begin, make([]byte, len(begin)))
}

// Content returns the whole file.
func Content(b *Bundle) *io.SectionReader { return io.NewSectionReader(b.file, 0, b.size) }
