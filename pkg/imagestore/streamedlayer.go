package imagestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/rootfs"
	digest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layerStream unpacks uncompressed layers while an archive is read:
//
//	archive ──► streamedLayer ──pipe──► goroutine: rootfs.ApplyLayer ──► snapshot
//
// This halves what is written to the disk. It needs the configs of the images, and the
// snapshots of the layers below, before a layer arrives.
type layerStream struct {
	snapshots snapshots.Snapshotter
	unpacked  unpackedDirs
	below     map[digest.Digest][]digest.Digest // of each layer that the configs name
	ambiguous map[digest.Digest]bool            // layers that images have above different layers
}

func newLayerStream(to snapshots.Snapshotter, unpacked unpackedDirs) *layerStream {
	return &layerStream{to, unpacked, map[digest.Digest][]digest.Digest{}, map[digest.Digest]bool{}}
}

// learn notes the layers of a blob, if it is the config of an image.
func (s *layerStream) learn(blob []byte) {
	var config ocispec.Image
	if json.Unmarshal(blob, &config) != nil {
		return
	}
	for i, layer := range config.RootFS.DiffIDs {
		below, known := s.below[layer]
		if known && identity.ChainID(below) != identity.ChainID(config.RootFS.DiffIDs[:i]) {
			s.ambiguous[layer] = true
		}
		s.below[layer] = config.RootFS.DiffIDs[:i]
	}
}

// blobPrefix is how containerd's import (v2.3) names the writer of a blob of an OCI
// image layout.
const blobPrefix = "tar-" + ocispec.ImageBlobsDir + "/" + string(digest.SHA256) + "/"

// writer returns a writer for a layer, or nil if the layer cannot be unpacked yet.
func (s *layerStream) writer(ctx context.Context, ref string) content.Writer {
	encoded, isBlob := strings.CutPrefix(ref, blobPrefix)
	layer := digest.NewDigestFromEncoded(digest.SHA256, encoded)
	below, known := s.below[layer]
	if !isBlob || !known || s.ambiguous[layer] {
		return nil
	}
	if _, err := s.snapshots.Stat(ctx, identity.ChainID(below).String()); len(below) > 0 && err != nil {
		return nil
	}
	from, to := io.Pipe()
	l := &streamedLayer{PipeWriter: to, ref: ref, digest: layer, done: make(chan error, 1)}
	go func() {
		err := s.unpack(ctx, layer, below, from)
		from.CloseWithError(err) // further writes fail
		l.done <- err
	}()
	return l
}

func (s *layerStream) unpack(ctx context.Context, layer digest.Digest, below []digest.Digest, from io.Reader) error {
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: layer}
	applier := streamApplier{from, s.unpacked}
	isNew, err := rootfs.ApplyLayer(ctx, rootfs.Layer{Diff: desc, Blob: desc}, below, s.snapshots, applier)
	if err == nil && !isNew {
		_, err = io.Copy(io.Discard, from)
	}
	return err
}

// streamApplier unpacks the layer that it reads.
type streamApplier struct {
	from     io.Reader
	unpacked unpackedDirs
}

// Apply implements diff.Applier. The caller compares the digest that it returns.
func (a streamApplier) Apply(
	ctx context.Context, layer ocispec.Descriptor, mounts []mount.Mount, _ ...diff.ApplyOpt,
) (ocispec.Descriptor, error) {
	digester := digest.Canonical.Digester()
	from := io.TeeReader(a.from, digester.Hash())
	err := a.unpacked.unpack(ctx, layer.Digest, mounts, from)
	if err == nil {
		_, err = io.Copy(io.Discard, from) // padding
	}
	return ocispec.Descriptor{MediaType: layer.MediaType, Digest: digester.Digest()}, err
}

// streamedLayer is the writer of a layer that is unpacked meanwhile.
type streamedLayer struct {
	*io.PipeWriter
	ref    string
	size   int64
	digest digest.Digest
	done   chan error
}

func (l *streamedLayer) Write(p []byte) (int, error) {
	n, err := l.PipeWriter.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *streamedLayer) Digest() digest.Digest { return l.digest }

func (l *streamedLayer) Status() (content.Status, error) {
	return content.Status{Ref: l.ref, Offset: l.size}, nil
}

// Commit waits until the layer is unpacked.
func (l *streamedLayer) Commit(context.Context, int64, digest.Digest, ...content.Opt) error {
	_ = l.PipeWriter.Close() // always nil
	return l.wait()
}

func (l *streamedLayer) wait() error {
	err := <-l.done
	l.done <- err // for the next caller
	return err
}

// Truncate fails, as what was written is unpacked.
func (l *streamedLayer) Truncate(int64) error {
	return errors.New("a layer that is being unpacked cannot be started again")
}

// Close waits until a layer without Commit is discarded.
func (l *streamedLayer) Close() error {
	_ = l.CloseWithError(io.ErrUnexpectedEOF) // always nil; no effect after Commit
	_ = l.wait()
	return nil
}

// configWriter writes a small blob, and lets the stream learn from it.
type configWriter struct {
	content.Writer
	blob   bytes.Buffer
	stream *layerStream
}

func (s *layerStream) learning(w content.Writer, err error) (content.Writer, error) {
	if err != nil {
		return nil, err
	}
	return &configWriter{Writer: w, stream: s}, nil
}

func (w *configWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.blob.Write(p[:n])
	return n, err
}

func (w *configWriter) Truncate(size int64) error {
	w.blob.Truncate(int(min(size, int64(w.blob.Len()))))
	return w.Writer.Truncate(size)
}

func (w *configWriter) Commit(ctx context.Context, size int64, expected digest.Digest, options ...content.Opt) error {
	w.stream.learn(w.blob.Bytes())
	return w.Writer.Commit(ctx, size, expected, options...)
}
