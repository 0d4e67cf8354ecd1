package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// frameReader reads blobs of a bundle. It decompresses each frame only once if the blobs are read in the order of
// inFileOrder.
type frameReader struct {
	bundle  *Bundle
	frame   int
	decoder *zstd.Decoder // nil: no frame is open
	archive *tar.Reader
	offset  int64        // of the next member in the decompressed frame
	base    *frameReader // nil: not needed yet
}

func (r *frameReader) close() {
	r.stop()
	if r.base != nil {
		r.base.close()
	}
}

// ReadBlobs calls read for each blob, in the order of the file: it decompresses each frame only once. copyTo writes
// the blob and verifies its digest.
func (b *Bundle) ReadBlobs(blobs []digest.Digest,
	read func(d digest.Digest, copyTo func(io.Writer) error) error) error {
	r := &frameReader{bundle: b}
	defer r.close()
	for _, d := range b.inFileOrder(blobs) {
		if err := read(d, func(w io.Writer) error { return r.copy(w, d) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bundle) copyBlob(w io.Writer, d digest.Digest) error {
	return b.ReadBlobs([]digest.Digest{d}, func(_ digest.Digest, to func(io.Writer) error) error { return to(w) })
}

// ReadText reads a manifest or a config into memory.
func (b *Bundle) ReadText(d digest.Digest) ([]byte, error) {
	if size := b.Manifest.Blobs[d].Size; size > ManifestLimit {
		return nil, fmt.Errorf("blob %s has %d bytes, more than the %d allowed", d, size, ManifestLimit)
	}
	var text bytes.Buffer
	err := b.copyBlob(&text, d)
	return text.Bytes(), err
}

func (b *Bundle) inFileOrder(blobs []digest.Digest) []digest.Digest {
	return slices.SortedStableFunc(slices.Values(blobs), b.compare)
}

// compare compares the positions of two blobs. Blobs of the base come last.
func (b *Bundle) compare(x, y digest.Digest) int {
	one, two := b.Manifest.Blobs[x], b.Manifest.Blobs[y]
	switch {
	case one.InBase && !two.InBase:
		return 1
	case two.InBase && !one.InBase:
		return -1
	case one.InBase && b.base != nil:
		one, two = b.base.Manifest.Blobs[x], b.base.Manifest.Blobs[y]
	}
	return cmp.Or(cmp.Compare(one.Frame, two.Frame), cmp.Compare(one.Offset, two.Offset))
}

// copy writes a blob to w and verifies its digest.
func (r *frameReader) copy(w io.Writer, d digest.Digest) error {
	check := d.Verifier()
	err := r.copyUnverified(io.MultiWriter(w, check), d)
	if err == nil && !check.Verified() {
		err = fmt.Errorf("bundle %s: blob %s: its content does not match its digest: the bundle is damaged",
			r.bundle.Path, d)
	}
	return err
}

func (r *frameReader) copyUnverified(w io.Writer, d digest.Digest) error {
	blob, err := r.open(d)
	if err == nil {
		defer blob.Close()
		_, err = io.Copy(w, blob)
	}
	return step.Wrap(err, "bundle %s: blob %s", r.bundle.Path, d)
}

func (r *frameReader) open(d digest.Digest) (io.ReadCloser, error) {
	blob, ok := r.bundle.Manifest.Blobs[d]
	switch {
	case !ok:
		return nil, errors.New("it is not in the bundle")
	case r.bundle.fetch != nil:
		return r.bundle.fetch(d)
	case blob.InBase && r.bundle.base == nil:
		return nil, r.bundle.errNoBase()
	case blob.InBase:
		r.stop()
		if r.base == nil {
			r.base = &frameReader{bundle: r.bundle.base}
		}
		return r.base.open(d)
	}
	if r.decoder == nil || r.frame != blob.Frame || blob.Offset < r.offset {
		if err := r.start(blob.Frame); err != nil {
			return nil, err
		}
	}
	return r.seek(d, blob)
}

func (r *frameReader) start(frame int) error {
	r.stop()
	var err error
	// Two workers: one decodes ahead while the output of the other is written.
	if r.decoder, err = compression.NewDecoder(r.bundle.section(frame), 2); err != nil {
		return err
	}
	r.frame, r.offset, r.archive = frame, 0, tar.NewReader(r.decoder)
	return nil
}

func (r *frameReader) stop() {
	if r.decoder == nil {
		return
	}
	r.decoder.Close()
	r.decoder, r.archive = nil, nil
}

// seek skips to the member of a blob, but not beyond the offset in the manifest.
func (r *frameReader) seek(d digest.Digest, blob Blob) (io.ReadCloser, error) {
	for {
		h, err := r.archive.Next()
		if err != nil {
			return nil, fmt.Errorf("the bundle is cut short or damaged: %w", err)
		}
		offset := r.offset
		r.offset += memberSize(h.Size)
		switch {
		case offset == blob.Offset && h.Name == blobName(d) && h.Typeflag == tar.TypeReg && h.Size == blob.Size:
			return io.NopCloser(r.archive), nil
		case h.Size < 0 || r.offset > blob.Offset:
			return nil, fmt.Errorf("the bundle is damaged: at its offset is %s with %d bytes", h.Name, h.Size)
		}
	}
}

func (b *Bundle) section(frame int) *io.SectionReader {
	f := b.Manifest.Frames[frame]
	return io.NewSectionReader(b.file, b.size-f.OffsetFromEnd, f.CompressedSize)
}

func (b *Bundle) errNoBase() error {
	return fmt.Errorf("it is in the base of this bundle, the bundle of Kubernetes %s; give that bundle with "+
		"--bundle-base", b.Manifest.Base.Kubernetes)
}
