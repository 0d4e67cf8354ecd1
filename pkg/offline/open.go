package offline

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// Bundle is an open bundle. It may be read by several at the same time.
type Bundle struct {
	Manifest
	Path      string
	file      *os.File
	size      int64
	raw       []byte  // the manifest as it is written
	signature []byte  // nil: not signed
	base      *Bundle // nil: not needed or not given
	feed      *Feed   // of all who load from it
	// fetch opens a blob that lies in a registry; nil: all lie in the file.
	fetch func(digest.Digest) (io.ReadCloser, error)
}

// Open reads what a bundle says it holds. The blobs are checked as they are
// read, quickly by Check, and all at once by Verify.
func Open(path string, options ...Option) (*Bundle, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no bundle at %s; make one by `kube-bootstrap offline build` and copy it there: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	b := &Bundle{Path: path, file: file, feed: &Feed{}}
	err = b.readHead()
	for _, option := range options {
		if err == nil {
			err = option(b)
		}
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	return b, nil
}

// Close closes the file of the bundle, and that of its base.
func (b *Bundle) Close() error {
	if b.base != nil {
		defer b.base.Close()
	}
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// again returns the same bundle, to be closed apart.
func (b *Bundle) again() (*Bundle, error) {
	again := *b
	if b.file != nil {
		fd, err := unix.FcntlInt(b.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		again.file = os.NewFile(uintptr(fd), b.Path)
	}
	if b.base == nil {
		return &again, nil
	}
	var err error
	if again.base, err = b.base.again(); err != nil {
		again.base = nil
		return nil, errors.Join(err, again.Close())
	}
	return &again, nil
}

// sharing has all who load from bundles with the same feed share it.
func sharing(feed *Feed) Option {
	return func(b *Bundle) error {
		if feed != nil {
			b.feed = feed
		}
		return nil
	}
}

// identity is the digest of the manifest, and so of everything.
func (b *Bundle) identity() digest.Digest { return digest.FromBytes(b.raw) }

// Signer is the fingerprint of the key that signed the bundle, as the bundle
// says: only SignedBy makes sure. It is empty if nobody did.
func (b *Bundle) Signer() string {
	if b.signature == nil {
		return ""
	}
	s, err := parseSignature(b.signature)
	if err != nil {
		return "unreadable"
	}
	return s.Signer
}

func (b *Bundle) readHead() error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	b.size = info.Size()
	// One worker: it stops where we do, others would read ahead.
	decoder, err := newDecoder(io.NewSectionReader(b.file, 0, b.size), 1)
	if err != nil {
		return err
	}
	defer decoder.Close()
	archive := tar.NewReader(decoder)
	if err := b.readManifest(archive); err != nil {
		return err
	}
	if err := b.validate(b.size); err != nil {
		return err
	}
	h, err := archive.Next()
	if err != nil || h.Name != signatureName {
		return nil // what follows the manifest is Verify's business
	}
	b.signature, err = readMember(h, archive, signatureLimit)
	return err
}

func (b *Bundle) readManifest(archive *tar.Reader) error {
	h, err := archive.Next()
	if err != nil {
		return fmt.Errorf("not a bundle, or one that is damaged: %w", err)
	}
	if h.Name != manifestName || h.Typeflag != tar.TypeReg {
		return fmt.Errorf("not a bundle of kube-bootstrap: it begins with %q, not with %s", h.Name, manifestName)
	}
	if b.raw, err = readMember(h, archive, manifestLimit); err != nil {
		return err
	}
	strict := json.NewDecoder(bytes.NewReader(b.raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&b.Manifest); err != nil {
		return fmt.Errorf("read %s: %w", manifestName, err)
	}
	return nil
}

// readMember reads a small member whole.
func readMember(h *tar.Header, r io.Reader, limit int64) ([]byte, error) {
	if h.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d allowed", h.Name, h.Size, limit)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: it is cut short or damaged: %w", h.Name, err)
	}
	return data, nil
}

func newDecoder(r io.Reader, workers int) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(workers), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true))
}

// copyBlob writes a blob to w and fails if it is not what its name says.
func (b *Bundle) copyBlob(w io.Writer, d digest.Digest) error {
	c := b.cursor()
	defer c.close()
	return c.copy(w, d)
}

// Check compares what the images of an architecture need with its digests,
// packed as it is: that takes a fraction of a second, and finds all damage
// before anything is loaded.
func (b *Bundle) Check(ctx context.Context, arch string) error {
	if !slices.Contains(b.Archs(), arch) {
		return fmt.Errorf("bundle %s: it is for %s, not for %s", b.Path, strings.Join(b.Archs(), ", "), arch)
	}
	return b.check(ctx, b.Images, arch)
}

func (b *Bundle) check(ctx context.Context, entries []Entry, arch string) error {
	if b.fetch != nil {
		return nil // what comes over a network is checked as it comes
	}
	blobs, _, _ := b.plan(entries, arch)
	return b.checkBlobs(ctx, blobs)
}

func (b *Bundle) checkBlobs(ctx context.Context, blobs []digest.Digest) error {
	frames, inBase := map[int]bool{}, []digest.Digest(nil)
	for _, d := range blobs {
		blob, ok := b.Blobs[d]
		switch {
		case !ok:
			return fmt.Errorf("bundle %s: blob %s: it is not in the bundle", b.Path, d)
		case !blob.InBase:
			frames[blob.Frame] = true
		case b.base == nil:
			return fmt.Errorf("bundle %s: blob %s: %w", b.Path, d, b.errNoBase())
		default:
			inBase = append(inBase, d)
		}
	}
	for frame := range frames {
		if err := b.checkFrame(ctx, frame); err != nil {
			return fmt.Errorf("bundle %s: %w", b.Path, err)
		}
	}
	if len(inBase) == 0 {
		return nil
	}
	return b.base.checkBlobs(ctx, inBase)
}

func (b *Bundle) checkFrame(ctx context.Context, frame int) error {
	check := b.Frames[frame].Sum.Verifier()
	if _, err := io.Copy(check, withContext(ctx, b.section(frame))); err != nil {
		return err
	}
	if !check.Verified() {
		return fmt.Errorf("frame %d is cut short or damaged: copy the bundle again", frame)
	}
	return nil
}
