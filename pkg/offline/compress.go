package offline

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

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

// keepFrom is the size from which compressed frames are kept for other bundles:
// those of layers, and not what is compressed in no time.
const keepFrom = 1 << 20

// groups are the blobs of each frame. Layers that several images share come
// first, as they are no programs in Go, and these are best compressed if nothing
// else lies between them. The rest is sorted by size: what changes seldom comes
// early, and a reader of something small is done early.
func (c *contents) groups() (all [][]source) {
	if len(c.blobs) > 0 {
		all = append(all, c.blobs)
	}
	for _, arch := range image.Archs {
		if layers := slices.Clone(c.layers[arch]); len(layers) > 0 {
			slices.SortStableFunc(layers, func(x, y source) int {
				return cmp.Or(cmp.Compare(min(c.uses(y, arch), 2), min(c.uses(x, arch), 2)), cmp.Compare(x.size, y.size))
			})
			all = append(all, layers)
		}
	}
	return all
}

// uses counts the images that have a layer.
func (c *contents) uses(layer source, arch string) (n int) {
	for _, e := range c.manifest.Images {
		if slices.Contains(e.Variants[arch].Layers, layer.digest) {
			n++
		}
	}
	return n
}

// frames compresses all groups side by side and returns the file of each.
func (c *contents) frames(ctx context.Context, work string, groups [][]source) ([]string, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	progress := newProgress(ctx, "compress the bundle", totalSize(slices.Concat(groups...)))
	files := make([]string, len(groups))
	for i, blobs := range groups {
		group.Go(func() (err error) {
			files[i], err = c.frame(ctx, filepath.Join(work, fmt.Sprint(i)), blobs, progress)
			return err
		})
	}
	return files, group.Wait()
}

func (c *contents) frame(ctx context.Context, path string, blobs []source, progress *progress) (string, error) {
	if totalSize(blobs) < keepFrom || c.cache == "" {
		return path, writeFrame(ctx, path, quick, blobs, progress)
	}
	var key string
	for _, b := range blobs {
		key += b.digest.String()
	}
	done := false
	name := fmt.Sprintf("frame-%d-%s-%s", recipe, c.packing.name, digest.FromString(key).Encoded()[:16])
	dir, err := image.Cached(ctx, c.cache, name, func(dir string) error {
		done = true
		return writeFrame(ctx, filepath.Join(dir, "frame"), c.packing, blobs, progress)
	})
	if err == nil && !done {
		progress.add(totalSize(blobs))
	}
	return filepath.Join(dir, "frame"), err
}

func writeFrame(ctx context.Context, path string, how packing, blobs []source, progress *progress) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	plain := piped(func(w io.Writer) error { return writeMembers(ctx, io.MultiWriter(w, progress), blobs) })
	defer plain.Close()
	return errors.Join(how.pack(ctx, file, plain, plainSize(blobs)), file.Close())
}

// piped reads what write writes; it must be closed.
func piped(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return r
}

func writeMembers(ctx context.Context, w io.Writer, blobs []source) error {
	archive := tar.NewWriter(w)
	for _, b := range blobs {
		if err := writeMember(ctx, archive, b); err != nil {
			return fmt.Errorf("blob %s: %w", b.digest, err)
		}
	}
	return archive.Flush() // pads, and leaves out the end mark
}

func writeMember(ctx context.Context, archive *tar.Writer, b source) error {
	data, err := b.open()
	if err != nil {
		return err
	}
	defer data.Close()
	if err := archive.WriteHeader(header(blobName(b.digest), b.size)); err != nil {
		return err
	}
	check := b.digest.Verifier()
	if _, err := io.Copy(io.MultiWriter(archive, check), withContext(ctx, data)); err != nil {
		return err
	}
	if !check.Verified() {
		return errors.New("its content changed while it was read")
	}
	return nil
}

func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
}

const tarBlock = 512

// memberSize is what a blob takes in a tar.
func memberSize(size int64) int64 { return tarBlock + (size+tarBlock-1)/tarBlock*tarBlock }

func plainSize(blobs []source) (total int64) {
	for _, b := range blobs {
		total += memberSize(b.size)
	}
	return total
}

func totalSize(blobs []source) (total int64) {
	for _, b := range blobs {
		total += b.size
	}
	return total
}
