package imagestore

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/diff/apply"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// stagingStore is the content store of containerd, except for layers: it unpacks
// them while it receives them, or keeps them in files without a name until
// layerApplier has unpacked them.
// Tried and rejected: importing the layers into containerd's own store over its
// socket takes three times as long, and twice the disk space. The result is the
// same as that of an import for which containerd discards unpacked layers.
type stagingStore struct {
	content.Store
	dir      string
	stream   *layerStream
	unpacked unpackedDirs
	layers   sync.Map // digest.Digest → *stagedLayer
}

func newStagingStore(c *containerd.Client, snapshotter, dir string) *stagingStore {
	unpacked := newUnpackedDirs()
	stream := newLayerStream(c.SnapshotService(snapshotter), unpacked)
	return &stagingStore{Store: c.ContentStore(), dir: dir, stream: stream, unpacked: unpacked}
}

func (s *stagingStore) close() {
	for _, layer := range s.layers.Range {
		layer.(*stagedLayer).file.Close()
	}
}

// read reads an archive and returns the images that it names.
func (s *stagingStore) read(ctx context.Context, from io.Reader) (all []images.Image, err error) {
	desc, err := archive.ImportIndex(ctx, s, from)
	if err != nil {
		return nil, err
	}
	data, err := content.ReadBlob(ctx, s, desc)
	if err != nil {
		return nil, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, err
	}
	for _, m := range index.Manifests {
		all = append(all, images.Image{Name: m.Annotations[images.AnnotationImageName], Target: m, Labels: criLabels})
	}
	// The garbage collection of containerd follows these labels from the name of
	// an image to its snapshots.
	keep := images.SetChildrenMappedLabels(s, images.ChildrenHandler(s), images.ChildGCLabelsFilterLayers)
	return all, images.Walk(ctx, keep, index.Manifests...)
}

// client returns a client that reads content from this store and unpacks layers
// in this process.
func (s *stagingStore) client(c *containerd.Client) (*containerd.Client, error) {
	conn, ok := c.Conn().(*grpc.ClientConn)
	if !ok {
		return nil, errors.New("containerd is not reached by a connection of its own")
	}
	applier := layerApplier{c.DiffService(), apply.NewFileSystemApplier(s), s, s.unpacked}
	return containerd.NewWithConn(conn,
		containerd.WithServices(containerd.WithContentStore(s), containerd.WithDiffService(applier)))
}

func (s *stagingStore) layer(d digest.Digest) *stagedLayer {
	found, _ := s.layers.Load(d)
	layer, _ := found.(*stagedLayer)
	return layer
}

// Writer implements content.Ingester.
func (s *stagingStore) Writer(ctx context.Context, options ...content.WriterOpt) (content.Writer, error) {
	var o content.WriterOpts
	for _, option := range options {
		if err := option(&o); err != nil {
			return nil, err
		}
	}
	if w := s.stream.writer(ctx, o.Ref); w != nil {
		return w, nil
	}
	if o.Desc.Size < image.ManifestLimit {
		return s.stream.learning(s.Store.Writer(ctx, options...))
	}
	return s.newLayer(o.Ref)
}

// ReaderAt implements content.Provider.
func (s *stagingStore) ReaderAt(ctx context.Context, desc ocispec.Descriptor) (content.ReaderAt, error) {
	if layer := s.layer(desc.Digest); layer != nil {
		return layer.reader(), nil
	}
	return s.Store.ReaderAt(ctx, desc)
}

// Info implements content.InfoProvider.
func (s *stagingStore) Info(ctx context.Context, d digest.Digest) (content.Info, error) {
	if layer := s.layer(d); layer != nil {
		return content.Info{Digest: d, Size: layer.size}, nil
	}
	return s.Store.Info(ctx, d)
}

// Update implements content.Manager. It ignores labels of a layer, which exists
// only until it is unpacked.
func (s *stagingStore) Update(ctx context.Context, info content.Info, paths ...string) (content.Info, error) {
	if s.layer(info.Digest) != nil {
		return info, nil
	}
	return s.Store.Update(ctx, info, paths...)
}

// stagedLayer is a layer in a file, and its writer until it is committed.
type stagedLayer struct {
	store  *stagingStore
	ref    string
	file   *os.File
	size   int64
	digest digest.Digester
}

func (s *stagingStore) newLayer(ref string) (content.Writer, error) {
	file, err := host.UnnamedFile(s.dir)
	if err != nil {
		return nil, err
	}
	return &stagedLayer{store: s, ref: ref, file: file, digest: digest.Canonical.Digester()}, nil
}

func (l *stagedLayer) Write(p []byte) (int, error) {
	n, err := l.file.Write(p)
	l.size += int64(n)
	_, _ = l.digest.Hash().Write(p[:n]) // never fails
	return n, err
}

func (l *stagedLayer) Digest() digest.Digest { return l.digest.Digest() }

func (l *stagedLayer) Status() (content.Status, error) {
	return content.Status{Ref: l.ref, Offset: l.size}, nil
}

// Commit adds the layer to the store if it has the expected size and digest.
func (l *stagedLayer) Commit(_ context.Context, size int64, expected digest.Digest, _ ...content.Opt) error {
	if size > 0 && size != l.size || expected != "" && expected != l.Digest() {
		return errors.Join(errors.New("layer "+l.Digest().String()+" is not what was expected: "+expected.String()),
			l.file.Close())
	}
	l.store.layers.LoadOrStore(l.Digest(), l)
	return nil
}

// Truncate restarts the layer from its beginning.
func (l *stagedLayer) Truncate(size int64) error {
	if size != 0 {
		return errors.New("a layer can only be started again from its beginning")
	}
	l.size = 0
	l.digest = digest.Canonical.Digester()
	_, err := l.file.Seek(0, io.SeekStart)
	return errors.Join(err, l.file.Truncate(0))
}

// Close discards a layer that the store does not keep.
func (l *stagedLayer) Close() error {
	if l.store.layer(l.Digest()) == l {
		return nil
	}
	return l.file.Close()
}

func (l *stagedLayer) reader() content.ReaderAt {
	return layerReader{io.NewSectionReader(l.file, 0, l.size)}
}

type layerReader struct{ *io.SectionReader }

func (layerReader) Close() error { return nil }
