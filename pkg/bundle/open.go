package bundle

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

// Bundle is an open bundle. Several goroutines may read it at the same time.
type Bundle struct {
	Manifest
	Path      string // of the file, or the reference in a registry
	file      *os.File
	size      int64
	raw       []byte     // the manifest as it is written
	signature []byte     // nil: not signed
	base      *Bundle    // nil: not needed or not given
	broadcast *Broadcast // of all stores that load from it
	// fetch opens a blob in a registry. It is nil if the blobs are in the file.
	fetch func(digest.Digest) (io.ReadCloser, error)
}

// Open opens a bundle and reads its manifest. Blobs are verified when they are
// read; Check and Verify do so before.
func Open(path string, options ...Option) (*Bundle, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no bundle at %s; make one by `kube-bootstrap offline build` and copy it there: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	b := &Bundle{Path: path, file: file, broadcast: &Broadcast{}}
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

// Close closes the files of the bundle and of its base.
func (b *Bundle) Close() error {
	if b.base != nil {
		defer b.base.Close()
	}
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// duplicate returns the same bundle with files of its own, which must be closed
// separately.
func (b *Bundle) duplicate() (*Bundle, error) {
	dup := *b
	if b.file != nil {
		fd, err := unix.FcntlInt(b.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		dup.file = os.NewFile(uintptr(fd), b.Path)
	}
	if b.base == nil {
		return &dup, nil
	}
	var err error
	if dup.base, err = b.base.duplicate(); err != nil {
		dup.base = nil
		return nil, errors.Join(err, dup.Close())
	}
	return &dup, nil
}

// identity returns the digest of the manifest, which covers all contents.
func (b *Bundle) identity() digest.Digest { return digest.FromBytes(b.raw) }

// Signer returns the fingerprint of the key that the bundle claims to be signed
// by; only SignedBy verifies it. It is empty for an unsigned bundle.
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
	// One worker: more would read beyond the head.
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
		return nil // Verify checks the other members
	}
	b.signature, err = readMember(h, archive, signatureLimit)
	return err
}

func (b *Bundle) readManifest(archive *tar.Reader) error {
	h, err := archive.Next()
	if err != nil {
		return fmt.Errorf("not a bundle, or a damaged bundle: %w", err)
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

// readMember reads a small member into memory.
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
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(workers), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
}

// copyBlob writes a blob to w and verifies its digest.
func (b *Bundle) copyBlob(w io.Writer, d digest.Digest) error {
	r := b.newFrameReader()
	defer r.close()
	return r.copy(w, d)
}

// Check verifies the frames that the images of an architecture need without
// decompressing them. This takes a fraction of a second, and finds all damage
// before anything is loaded.
func (b *Bundle) Check(ctx context.Context, arch string) error {
	if !slices.Contains(b.Archs(), arch) {
		return fmt.Errorf("bundle %s: it is for %s, not for %s", b.Path, strings.Join(b.Archs(), ", "), arch)
	}
	return b.CheckImages(ctx, b.Images, arch)
}

// Find returns the image of a reference, which must be there for the
// architecture.
func (b *Bundle) Find(ref, arch string) (Image, error) {
	found, err := b.Manifest.Find(ref, arch)
	if err != nil {
		return found, fmt.Errorf("bundle %s: %w", b.Path, err)
	}
	return found, nil
}

// CNIPlugins returns the digests of the CNI plugins for an architecture by name.
func (b *Bundle) CNIPlugins(arch string) (map[string]digest.Digest, error) {
	all, ok := b.Plugins[arch]
	if !ok {
		return nil, fmt.Errorf("bundle %s holds no CNI plugins for %s", b.Path, arch)
	}
	return all.Files, nil
}

// ReadCNIPlugins opens the layer that contains the CNI plugins for an
// architecture. It contains all, whatever the names.
func (b *Bundle) ReadCNIPlugins(_ context.Context, arch string, _ []string) io.ReadCloser {
	return Pipe(func(w io.Writer) error { return b.copyBlob(w, b.Plugins[arch].Layer) })
}

// CheckImages does the same for some images.
func (b *Bundle) CheckImages(ctx context.Context, images []Image, arch string) error {
	if b.fetch != nil {
		return nil // blobs from a registry are verified when they are read
	}
	return b.checkBlobs(ctx, b.contentsOf(images, arch).blobs)
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
	check := b.Frames[frame].Digest.Verifier()
	if _, err := io.Copy(check, withContext(ctx, b.section(frame))); err != nil {
		return err
	}
	if !check.Verified() {
		return fmt.Errorf("frame %d is cut short or damaged: copy the bundle again", frame)
	}
	return nil
}
