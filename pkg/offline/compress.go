package offline

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// source is a blob to be written.
type source struct {
	digest digest.Digest
	size   int64
	open   func() (io.ReadCloser, error)
}

// keepFrom is the size from which compressed blobs are kept for other bundles:
// layers, and not what is compressed in no time.
const keepFrom = 1 << 20

// frames compresses all blobs side by side and returns the file of each.
func (c *contents) frames(ctx context.Context, work string) (map[digest.Digest]string, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	progress := newProgress(ctx, "compress the bundle", totalSize(c.blobs))
	paths := make([]string, len(c.blobs))
	for i, b := range c.blobs {
		group.Go(func() (err error) {
			if paths[i], err = c.frame(ctx, work, b, progress); err != nil {
				return fmt.Errorf("compress blob %s: %w", b.digest, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	files := map[digest.Digest]string{}
	for i, b := range c.blobs {
		files[b.digest] = paths[i]
	}
	return files, nil
}

func (c *contents) frame(ctx context.Context, work string, b source, progress *progress) (string, error) {
	if b.size < keepFrom {
		path := filepath.Join(work, b.digest.Encoded())
		return path, writeFrame(ctx, path, b, progress)
	}
	done := false
	dir, err := image.Cached(ctx, c.cache, fmt.Sprintf("frame-%d-%s", recipe, b.digest.Encoded()), func(dir string) error {
		done = true
		return writeFrame(ctx, filepath.Join(dir, "frame"), b, progress)
	})
	if err == nil && !done {
		progress.add(b.size)
	}
	return filepath.Join(dir, "frame"), err
}

// newEncoder looks back no further than size, which saves time and memory here
// and on the host that reads it.
func newEncoder(w io.Writer, size int64) (*zstd.Encoder, error) {
	back := zstd.MinWindowSize
	for int64(back) < size && back < window {
		back *= 2
	}
	// One worker an encoder: the blobs are already done side by side, and the
	// same input always gives the same bytes.
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(back), zstd.WithEncoderConcurrency(1))
}

func writeFrame(ctx context.Context, path string, b source, progress *progress) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(compress(ctx, file, b, progress), file.Close())
}

func compress(ctx context.Context, w io.Writer, b source, progress *progress) error {
	data, err := b.open()
	if err != nil {
		return err
	}
	defer data.Close()
	encoder, err := newEncoder(w, b.size)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(encoder)
	if err := archive.WriteHeader(header(blobName(b.digest), b.size)); err != nil {
		return err
	}
	check := b.digest.Verifier()
	if _, err := io.Copy(io.MultiWriter(archive, check, progress), withContext(ctx, data)); err != nil {
		return err
	}
	if !check.Verified() {
		return errors.New("its content changed while it was read")
	}
	if err := archive.Flush(); err != nil { // pads, and leaves out the end mark
		return err
	}
	return encoder.Close()
}

func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
}

func encodeTo(w io.Writer, data []byte) error {
	encoder, err := newEncoder(w, int64(len(data)))
	if err != nil {
		return err
	}
	if _, err := encoder.Write(data); err != nil {
		return err
	}
	return encoder.Close()
}

func totalSize(blobs []source) (total int64) {
	for _, b := range blobs {
		total += b.size
	}
	return total
}
