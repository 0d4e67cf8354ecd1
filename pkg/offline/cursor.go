package offline

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
)

// cursor reads blobs of a bundle. Those that lie behind one another in a frame
// cost one pass over it, if they are read in the order of sorted.
type cursor struct {
	*Bundle
	frame   int
	decoder *zstd.Decoder // nil: no frame is open
	archive *tar.Reader
	at      int64   // where the next member begins in the plain frame
	base    *cursor // nil: not needed yet
}

func (b *Bundle) cursor() *cursor { return &cursor{Bundle: b} }

func (c *cursor) close() {
	c.stop()
	if c.base != nil {
		c.base.close()
	}
}

// sorted puts blobs in the order in which they are best read.
func (b *Bundle) sorted(blobs []digest.Digest) []digest.Digest {
	return slices.SortedStableFunc(slices.Values(blobs), b.compare)
}

func (b *Bundle) compare(x, y digest.Digest) int {
	one, two := b.Blobs[x], b.Blobs[y]
	if one.InBase && two.InBase && b.base != nil {
		one, two = b.base.Blobs[x], b.base.Blobs[y]
	}
	return cmp.Or(cmp.Compare(number(one.InBase), number(two.InBase)), cmp.Compare(one.Frame, two.Frame), cmp.Compare(one.At, two.At))
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// copy writes a blob to w and fails if it is not what its name says.
func (c *cursor) copy(w io.Writer, d digest.Digest) error {
	check := d.Verifier()
	err := c.copyUnchecked(io.MultiWriter(w, check), d)
	if err == nil && !check.Verified() {
		err = fmt.Errorf("bundle %s: blob %s: its content is not what its digest says: the bundle is damaged", c.Path, d)
	}
	return err
}

func (c *cursor) copyUnchecked(w io.Writer, d digest.Digest) error {
	r, err := c.open(d)
	if err == nil {
		defer r.Close()
		_, err = io.Copy(w, r)
	}
	if err != nil {
		return fmt.Errorf("bundle %s: blob %s: %w", c.Path, d, err)
	}
	return nil
}

func (c *cursor) open(d digest.Digest) (io.ReadCloser, error) {
	blob, ok := c.Blobs[d]
	switch {
	case !ok:
		return nil, errors.New("it is not in the bundle")
	case c.fetch != nil:
		return c.fetch(d)
	case blob.InBase && c.Bundle.base == nil:
		return nil, c.errNoBase()
	case blob.InBase:
		c.stop()
		if c.base == nil {
			c.base = c.Bundle.base.cursor()
		}
		return c.base.open(d)
	}
	if c.decoder == nil || c.frame != blob.Frame || blob.At < c.at {
		if err := c.start(blob.Frame); err != nil {
			return nil, err
		}
	}
	return c.seek(d, blob)
}

func (c *cursor) start(frame int) error {
	c.stop()
	var err error
	// Two workers: one decodes ahead while the other's output is written.
	if c.decoder, err = newDecoder(c.section(frame), 2); err != nil {
		return err
	}
	c.frame, c.at, c.archive = frame, 0, tar.NewReader(c.decoder)
	return nil
}

func (c *cursor) stop() {
	if c.decoder == nil {
		return
	}
	c.decoder.Close()
	c.decoder, c.archive = nil, nil
}

// seek goes on to the member of a blob, and no further than the manifest says.
func (c *cursor) seek(d digest.Digest, blob Blob) (io.ReadCloser, error) {
	for {
		h, err := c.archive.Next()
		if err != nil {
			return nil, fmt.Errorf("the bundle is cut short or damaged: %w", err)
		}
		at := c.at
		c.at += memberSize(h.Size)
		switch {
		case at == blob.At && h.Name == blobName(d) && h.Typeflag == tar.TypeReg && h.Size == blob.Size:
			return io.NopCloser(c.archive), nil
		case h.Size < 0 || c.at > blob.At:
			return nil, fmt.Errorf("the bundle is damaged: %s with %d bytes lies in its place", h.Name, h.Size)
		}
	}
}

func (b *Bundle) section(frame int) *io.SectionReader {
	f := b.Frames[frame]
	return io.NewSectionReader(b.file, b.size-f.FromEnd, f.Packed)
}

func (b *Bundle) errNoBase() error {
	return fmt.Errorf("it lies in the bundle of Kubernetes %s that this one was built on; name that one as the base", b.Base.Kubernetes)
}
