package offline

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// source is a blob to be written.
type source struct {
	digest digest.Digest
	size   int64
	open   func() (io.ReadCloser, error)
}

// write makes a bundle of the contents at path, in one move.
func write(ctx context.Context, path string, c *contents) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(path), ".bundle-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := compressBlobs(ctx, work, c.blobs); err != nil {
		return err
	}
	tmp := filepath.Join(work, "bundle")
	if err := join(tmp, work, c); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func frameFile(work string, d digest.Digest) string { return filepath.Join(work, d.Encoded()) }

func compressBlobs(ctx context.Context, work string, blobs []source) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	progress := newProgress(ctx, "compress the bundle", totalSize(blobs))
	for _, b := range blobs {
		group.Go(func() error {
			file, err := os.Create(frameFile(work, b.digest))
			if err != nil {
				return err
			}
			defer file.Close()
			if err := writeFrame(ctx, file, b, progress); err != nil {
				return fmt.Errorf("compress blob %s: %w", b.digest, err)
			}
			return file.Close()
		})
	}
	return group.Wait()
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

func writeFrame(ctx context.Context, w io.Writer, b source, progress *progress) error {
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
		return fmt.Errorf("its content changed while it was read")
	}
	if err := archive.Flush(); err != nil { // pads, and leaves out the end mark
		return err
	}
	return encoder.Close()
}

func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
}

// join writes the first frame, the frames of the blobs, and the end.
func join(path, work string, c *contents) error {
	var end bytes.Buffer
	if err := encodeTo(&end, make([]byte, 1024)); err != nil {
		return err
	}
	if err := c.place(work, int64(end.Len())); err != nil {
		return err
	}
	var head bytes.Buffer
	if err := c.writeHead(&head); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := encodeTo(file, head.Bytes()); err != nil {
		return err
	}
	for _, b := range c.blobs {
		if err := appendFile(file, frameFile(work, b.digest)); err != nil {
			return err
		}
	}
	if _, err := file.Write(end.Bytes()); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
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

func appendFile(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, file)
	return err
}

// place notes where each blob will lie, from the last one backwards.
func (c *contents) place(work string, fromEnd int64) error {
	c.manifest.Blobs = map[digest.Digest]Blob{}
	for i := len(c.blobs) - 1; i >= 0; i-- {
		b := c.blobs[i]
		info, err := os.Stat(frameFile(work, b.digest))
		if err != nil {
			return err
		}
		fromEnd += info.Size()
		c.manifest.Blobs[b.digest] = Blob{Size: b.size, FromEnd: fromEnd, Packed: info.Size()}
	}
	return nil
}

func (c *contents) writeHead(w io.Writer) error {
	archive := tar.NewWriter(w)
	for _, member := range []struct {
		name  string
		value any
	}{
		{manifestName, c.manifest},
		{ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}},
		{ocispec.ImageIndexFile, c.index},
	} {
		if err := writeJSON(archive, member.name, member.value); err != nil {
			return err
		}
	}
	if archs := c.manifest.Archs(); len(archs) == 1 {
		if err := writeJSON(archive, dockerTable, c.dockerTable(archs[0])); err != nil {
			return err
		}
	}
	return archive.Flush()
}

// dockerTable lets `docker load` read a bundle of one architecture. It knows
// no others, so a bundle of several has none.
func (c *contents) dockerTable(arch string) (table []dockerImage) {
	for _, e := range c.manifest.Images {
		table = append(table, e.docker(arch))
	}
	return table
}

func writeJSON(archive *tar.Writer, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(header(name, int64(len(data)))); err != nil {
		return err
	}
	_, err = archive.Write(data)
	return err
}

func totalSize(blobs []source) (total int64) {
	for _, b := range blobs {
		total += b.size
	}
	return total
}
