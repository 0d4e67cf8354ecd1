package offline

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
)

// Bundle is an open bundle. It may be read by several at the same time.
type Bundle struct {
	Manifest
	Path string
	file *os.File
	size int64
}

// Open reads what a bundle says it holds. The blobs are checked as they are
// read, and all at once by Verify.
func Open(path string) (*Bundle, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no bundle at %s; make one by `kube-bootstrap offline build` and copy it there: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	b := &Bundle{Path: path, file: file}
	if err := b.readManifest(); err != nil {
		file.Close()
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	return b, nil
}

// Close closes the file of the bundle.
func (b *Bundle) Close() error { return b.file.Close() }

func (b *Bundle) readManifest() error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	b.size = info.Size()
	decoder, err := newDecoder(io.NewSectionReader(b.file, 0, b.size))
	if err != nil {
		return err
	}
	defer decoder.Close()
	archive := tar.NewReader(decoder)
	h, err := archive.Next()
	if err != nil {
		return fmt.Errorf("not a bundle: %w", err)
	}
	if h.Name != manifestName || h.Typeflag != tar.TypeReg {
		return fmt.Errorf("not a bundle of kube-bootstrap: it begins with %q, not with %s", h.Name, manifestName)
	}
	if h.Size > manifestLimit {
		return fmt.Errorf("%s has %d bytes, more than the %d allowed", manifestName, h.Size, manifestLimit)
	}
	data, err := io.ReadAll(archive)
	if err != nil {
		return fmt.Errorf("read %s: %w", manifestName, err)
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&b.Manifest); err != nil {
		return fmt.Errorf("read %s: %w", manifestName, err)
	}
	return b.validate(b.size)
}

func newDecoder(r io.Reader) (*zstd.Decoder, error) {
	// Two workers: one decodes ahead while the other's output is written.
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxWindow(2*window))
}

// copyBlob writes a blob to w and fails if it is not what its name says.
func (b *Bundle) copyBlob(w io.Writer, d digest.Digest) error {
	if err := b.readBlob(w, d); err != nil {
		return fmt.Errorf("bundle %s: blob %s: %w", b.Path, d, err)
	}
	return nil
}

func (b *Bundle) readBlob(w io.Writer, d digest.Digest) error {
	decoder, archive, err := b.openBlob(d)
	if err != nil {
		return err
	}
	defer decoder.Close()
	check := d.Verifier()
	if _, err := io.Copy(io.MultiWriter(w, check), archive); err != nil {
		return err
	}
	if !check.Verified() {
		return errors.New("its content is not what its digest says: the bundle is damaged")
	}
	return nil
}

func (b *Bundle) openBlob(d digest.Digest) (*zstd.Decoder, *tar.Reader, error) {
	blob, ok := b.Blobs[d]
	if !ok {
		return nil, nil, errors.New("it is not in the bundle")
	}
	decoder, err := newDecoder(io.NewSectionReader(b.file, b.size-blob.FromEnd, blob.Packed))
	if err != nil {
		return nil, nil, err
	}
	archive := tar.NewReader(decoder)
	h, err := archive.Next()
	if err == nil && (h.Name != blobName(d) || h.Typeflag != tar.TypeReg || h.Size != blob.Size) {
		err = fmt.Errorf("%s with %d bytes lies in its place", h.Name, h.Size)
	}
	if err != nil {
		decoder.Close()
		return nil, nil, fmt.Errorf("the bundle is cut short or damaged: %w", err)
	}
	return decoder, archive, nil
}
