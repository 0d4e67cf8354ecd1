package artifact

import (
	"context"
	"io"
	"os"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// layerFiles are files with a compressed layer each, by the digest of the uncompressed layer.
type layerFiles map[digest.Digest]*layerFile

// layerFile is a compressed layer in a file without a name.
type layerFile struct {
	blob compressedBlob
	data *os.File
}

func (l layerFiles) close() {
	for _, file := range l {
		file.data.Close()
	}
}

// compress compresses layers in one pass over the bundle, and records them in s. The caller
// closes the files, also after an error.
func (p push) compress(ctx context.Context, layers []digest.Digest, s stored) (layerFiles, error) {
	progress := step.NewCounter(ctx, "compress the layers", p.from.Manifest.SizeOf(layers))
	all := layerFiles{}
	err := p.from.ReadBlobs(layers, func(d digest.Digest, copyTo func(io.Writer) error) error {
		data, err := host.UnnamedFile("")
		if err != nil {
			return err
		}
		all[d] = &layerFile{data: data}
		err = all[d].compress(ctx, func(w io.Writer) error {
			return copyTo(io.MultiWriter(w, progress))
		}, p.from.Manifest.Blobs[d].Size)
		s.Layers[d] = all[d].blob
		return step.Wrap(err, "compress layer %s", d)
	})
	return all, err
}

// compress compresses what write writes, size bytes.
func (l *layerFile) compress(ctx context.Context, write func(io.Writer) error, size int64) error {
	sum := digest.Canonical.Digester()
	ended := make(chan struct{})
	plain := bundle.Pipe(func(w io.Writer) error { defer close(ended); return write(w) })
	defer func() {
		plain.Close()
		<-ended // the caller closes what write reads from
	}()
	if err := compression.Encode(io.MultiWriter(l.data, sum.Hash()), bundle.WithContext(ctx, plain), size,
		zstd.SpeedBetterCompression); err != nil {
		return err
	}
	at, err := l.data.Seek(0, io.SeekCurrent)
	l.blob = compressedBlob{sum.Digest(), at}
	return err
}

// compressedLayer implements go-containerregistry's layer for a compressed layer.
type compressedLayer struct {
	*layerFile
	progress *step.Counter

	mu   sync.Mutex
	done int64 // bytes counted so far
}

func (l *compressedLayer) Digest() (v1.Hash, error)            { return v1.NewHash(l.blob.Digest.String()) }
func (l *compressedLayer) Size() (int64, error)                { return l.blob.Size, nil }
func (l *compressedLayer) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }

func (l *compressedLayer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(io.TeeReader(io.NewSectionReader(l.data, 0, l.blob.Size), l)), nil
}

// Write counts uploaded bytes. It counts bytes that are sent again only once.
func (l *compressedLayer) Write(data []byte) (int, error) {
	l.add(int64(len(data)))
	return len(data), nil
}

// add counts n bytes, but no more than the layer has.
func (l *compressedLayer) add(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, l.blob.Size-l.done)
	l.done += n
	l.progress.Add(n)
}
