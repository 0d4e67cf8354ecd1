package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
)

// packedLayers are compressed layers in a directory, before they are uploaded
// to a registry.
type packedLayers struct {
	dir      string
	files    map[digest.Digest]packedBlob // by digest of the compressed layer
	progress *progress                    // progress of the upload; nil before it
}

// pack compresses layers in one pass over the bundle.
func (p *packedLayers) pack(ctx context.Context, b *Bundle, layers []digest.Digest) (map[digest.Digest]packedBlob, error) {
	var total int64
	for _, d := range layers {
		total += b.Blobs[d].Size
	}
	progress := newProgress(ctx, "compress the layers", total)
	all := map[digest.Digest]packedBlob{}
	from := b.cursor()
	defer from.close()
	for _, d := range b.sorted(layers) {
		one, err := p.packOne(func(w io.Writer) error {
			return from.copy(io.MultiWriter(contextWriter{ctx, w}, progress), d)
		}, b.Blobs[d].Size)
		if err != nil {
			return nil, fmt.Errorf("compress layer %s: %w", d, err)
		}
		all[d] = one
	}
	return all, nil
}

func (p *packedLayers) packOne(write func(io.Writer) error, size int64) (packedBlob, error) {
	file, err := os.CreateTemp(p.dir, "layer-")
	if err != nil {
		return packedBlob{}, err
	}
	defer file.Close()
	sum := digest.Canonical.Digester()
	plain := piped(write)
	defer plain.Close()
	if err := encode(io.MultiWriter(file, sum.Hash()), plain, size, zstd.SpeedBetterCompression); err != nil {
		return packedBlob{}, err
	}
	at, err := file.Seek(0, io.SeekCurrent)
	one := packedBlob{sum.Digest(), at}
	p.files[one.Digest] = one
	return one, errors.Join(err, os.Rename(file.Name(), p.path(one.Digest)))
}

func (p *packedLayers) path(d digest.Digest) string { return filepath.Join(p.dir, d.Encoded()) }

func (p *packedLayers) byDigest(d digest.Digest) (*packedLayer, error) {
	one, ok := p.files[d]
	if !ok {
		return nil, fmt.Errorf("no layer %s within", d)
	}
	return &packedLayer{packedBlob: one, path: p.path(d), progress: p.progress}, nil
}

// packedLayer implements go-containerregistry's layer for a compressed layer.
type packedLayer struct {
	packedBlob
	path     string
	progress *progress // may be nil

	mu   sync.Mutex
	done int64 // bytes counted so far
}

func (l *packedLayer) Digest() (v1.Hash, error)            { return v1.NewHash(l.packedBlob.Digest.String()) }
func (l *packedLayer) Size() (int64, error)                { return l.packedBlob.Size, nil }
func (l *packedLayer) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }

func (l *packedLayer) Compressed() (io.ReadCloser, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(file, l), file}, nil
}

// Write counts uploaded bytes. It counts bytes that are sent again only once.
func (l *packedLayer) Write(data []byte) (int, error) {
	l.add(int64(len(data)))
	return len(data), nil
}

// count counts the whole layer, if the registry already had it.
func (l *packedLayer) count() { l.add(l.packedBlob.Size) }

func (l *packedLayer) add(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, l.packedBlob.Size-l.done)
	l.done += n
	if l.progress != nil {
		l.progress.add(n)
	}
}

// contextWriter makes a copy fail once the context ends.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c contextWriter) Write(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.w.Write(p)
}
