package bundle

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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

type blobSource struct {
	digest digest.Digest
	size   int64
	open   func() (io.ReadCloser, error)
}

// cacheFrom is the size from which a frame is cached: others are compressed in no time.
const cacheFrom = 1 << 20

// groups returns the blobs of each frame. Layers that several images share come first: they contain no Go programs,
// which compress best next to one another. Then come the CNI plugins, which a host reads alone, with the layers below
// them. The other layers are sorted by size, with the layers below: a reader can unpack each layer when it arrives,
// large layers change most often, and a reader of a small layer finishes early.
func (b *Builder) groups() (all [][]blobSource) {
	if len(b.blobs) > 0 {
		all = append(all, b.blobs)
	}
	for _, arch := range config.Arches {
		if layers := slices.Clone(b.layers[arch]); len(layers) > 0 {
			orders := b.orders(layers, arch)
			slices.SortStableFunc(layers, func(x, y blobSource) int {
				first, second := orders[x.digest], orders[y.digest]
				return cmp.Or(cmp.Compare(first.rank, second.rank), cmp.Compare(first.depth, second.depth))
			})
			all = append(all, layers)
		}
	}
	return all
}

// layerOrder is the sort key of a layer in its frame.
type layerOrder struct {
	rank  int   // 0: layers of several images; 1: the layers up to the CNI plugins; 2: other layers
	depth int64 // size in bytes of the layer with the layers below it
}

func (b *Builder) orders(layers []blobSource, arch string) map[digest.Digest]layerOrder {
	sizes, uses, orders := map[digest.Digest]int64{}, map[digest.Digest]int{}, map[digest.Digest]layerOrder{}
	for _, layer := range layers {
		sizes[layer.digest] = layer.size
	}
	for _, i := range b.manifest.Images {
		all, depth := i.Platforms[arch].Layers, int64(0)
		plugins := slices.Index(all, b.manifest.Plugins[arch].Layer)
		for at, layer := range all {
			first := slices.Index(all, layer) // some images have an empty layer several times
			if first == at {
				uses[layer]++
			}
			depth += sizes[layer]
			switch {
			case uses[layer] > 1:
				orders[layer] = layerOrder{0, depth}
			case first <= plugins:
				orders[layer] = layerOrder{1, depth}
			default:
				orders[layer] = layerOrder{2, depth}
			}
		}
	}
	return orders
}

// frames compresses all groups concurrently and returns the file of each.
func (b *Builder) frames(ctx context.Context, work string, groups [][]blobSource) ([]string, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	progress := step.NewCounter(ctx, "compress the bundle", totalSize(slices.Concat(groups...)))
	files := make([]string, len(groups))
	for i, blobs := range groups {
		group.Go(func() (err error) {
			files[i], err = b.frame(ctx, filepath.Join(work, fmt.Sprint(i)), blobs, progress)
			return err
		})
	}
	return files, group.Wait()
}

func (b *Builder) frame(ctx context.Context, path string, blobs []blobSource, progress *step.Counter) (string, error) {
	if totalSize(blobs) < cacheFrom || b.Cache == "" {
		return path, writeFrame(ctx, path, compression.Fast, blobs, progress)
	}
	var key string
	for _, blob := range blobs {
		key += blob.digest.String()
	}
	done := false
	name := fmt.Sprintf("frame-%d-%s-%s", recipeVersion, b.compression.Name, digest.FromString(key).Encoded()[:16])
	dir, err := cache.Get(ctx, b.Cache, name, func(dir string) error {
		done = true
		return writeFrame(ctx, filepath.Join(dir, "frame"), b.compression, blobs, progress)
	})
	if err == nil && !done {
		progress.Add(totalSize(blobs))
	}
	return filepath.Join(dir, "frame"), err
}

func writeFrame(ctx context.Context, path string, how compression.Method, blobs []blobSource,
	progress *step.Counter) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	plain := Pipe(func(w io.Writer) error { return writeMembers(ctx, io.MultiWriter(w, progress), blobs) })
	defer plain.Close()
	return errors.Join(how.Compress(ctx, file, plain, plainSize(blobs)), file.Close())
}

func writeMembers(ctx context.Context, w io.Writer, blobs []blobSource) error {
	archive := tar.NewWriter(w)
	for _, b := range blobs {
		if err := writeMember(ctx, archive, b); err != nil {
			return fmt.Errorf("blob %s: %w", b.digest, err)
		}
	}
	return archive.Flush() // pads the last member, and writes no end of archive
}

func writeMember(ctx context.Context, archive *tar.Writer, b blobSource) error {
	data, err := b.open()
	if err != nil {
		return err
	}
	defer data.Close()
	if err := archive.WriteHeader(header(blobName(b.digest), b.size)); err != nil {
		return err
	}
	check := b.digest.Verifier()
	if _, err := io.Copy(io.MultiWriter(archive, check), WithContext(ctx, data)); err != nil {
		return err
	}
	if !check.Verified() {
		return errors.New("its content changed while it was read")
	}
	return nil
}

func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0),
		Format: tar.FormatUSTAR}
}

const tarBlock = 512

// memberSize returns the size of a blob in a tar archive, with its header.
func memberSize(size int64) int64 { return tarBlock + (size+tarBlock-1)/tarBlock*tarBlock }

func plainSize(blobs []blobSource) (total int64) {
	for _, b := range blobs {
		total += memberSize(b.size)
	}
	return total
}

func totalSize(blobs []blobSource) (total int64) {
	for _, b := range blobs {
		total += b.size
	}
	return total
}

// Pipe returns a reader, to be closed, of what write writes in a goroutine of its own.
func Pipe(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return r
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// WithContext makes a long copy fail once the context ends.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
