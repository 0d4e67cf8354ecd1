package artifact

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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// compress compresses layers in one pass over the bundle, each into a file that pathOf names.
func (p push) compress(ctx context.Context, layers []digest.Digest) (map[digest.Digest]compressedBlob, error) {
	var total int64
	for _, d := range layers {
		total += p.Blobs[d].Size
	}
	progress := step.NewCounter(ctx, "compress the layers", total)
	all := map[digest.Digest]compressedBlob{}
	err := p.ReadBlobs(layers, func(d digest.Digest, copyTo func(io.Writer) error) (err error) {
		all[d], err = p.compressOne(ctx, func(w io.Writer) error { return copyTo(io.MultiWriter(w, progress)) }, p.Blobs[d].Size)
		if err != nil {
			return fmt.Errorf("compress layer %s: %w", d, err)
		}
		return nil
	})
	return all, err
}

func (p push) compressOne(ctx context.Context, write func(io.Writer) error, size int64) (compressedBlob, error) {
	file, err := os.CreateTemp(p.work, "layer-")
	if err != nil {
		return compressedBlob{}, err
	}
	defer file.Close()
	sum := digest.Canonical.Digester()
	ended := make(chan struct{})
	plain := bundle.Pipe(func(w io.Writer) error { defer close(ended); return write(w) })
	defer func() {
		plain.Close()
		<-ended // the caller closes what write reads from
	}()
	if err := compression.Encode(io.MultiWriter(file, sum.Hash()), bundle.WithContext(ctx, plain), size, zstd.SpeedBetterCompression); err != nil {
		return compressedBlob{}, err
	}
	at, err := file.Seek(0, io.SeekCurrent)
	return compressedBlob{sum.Digest(), at}, errors.Join(err, os.Rename(file.Name(), p.pathOf(sum.Digest())))
}

// pathOf returns the file of a compressed layer.
func (p push) pathOf(d digest.Digest) string { return filepath.Join(p.work, d.Encoded()) }

// compressedLayer implements go-containerregistry's layer for a compressed layer.
type compressedLayer struct {
	compressedBlob
	path     string
	progress *step.Counter

	mu   sync.Mutex
	done int64 // bytes counted so far
}

func (l *compressedLayer) Digest() (v1.Hash, error) {
	return v1.NewHash(l.compressedBlob.Digest.String())
}
func (l *compressedLayer) Size() (int64, error)                { return l.compressedBlob.Size, nil }
func (l *compressedLayer) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }

func (l *compressedLayer) Compressed() (io.ReadCloser, error) {
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
func (l *compressedLayer) Write(data []byte) (int, error) {
	l.add(int64(len(data)))
	return len(data), nil
}

// count counts the whole layer, if the registry already had it.
func (l *compressedLayer) count() { l.add(l.compressedBlob.Size) }

func (l *compressedLayer) add(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, l.compressedBlob.Size-l.done)
	l.done += n
	l.progress.Add(n)
}
