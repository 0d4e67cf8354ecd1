package offline

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"
)

// spool is containerd's content store, but for the layers: they lie in files of
// ours without a name until they are unpacked, and are unpacked by us. Brought
// to containerd over its socket they would take three times as long, and then
// lie on the disk twice. This is what containerd makes of an image when it is
// told to discard unpacked layers.
type spool struct {
	content.Store
	dir string

	mu     sync.Mutex
	layers map[digest.Digest]*spooled
}

// smallestLayer is the size of a blob that can be no manifest: registries take
// no larger ones (OCI distribution specification, "Pushing Manifests").
const smallestLayer = 4 << 20

func newSpool(to content.Store, dir string) *spool {
	return &spool{Store: to, dir: dir, layers: map[digest.Digest]*spooled{}}
}

func (s *spool) close() {
	for _, layer := range s.layers {
		layer.file.Close()
	}
}

// read takes an archive in and returns the images that it names.
func (s *spool) read(ctx context.Context, from io.Reader) ([]images.Image, error) {
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
	var all []images.Image
	for _, m := range index.Manifests {
		all = append(all, images.Image{Name: m.Annotations[annotationName], Target: m, Labels: criLabels})
	}
	// What is kept of an image has to lead from its name to what was unpacked.
	keep := images.SetChildrenMappedLabels(s, images.ChildrenHandler(s), images.ChildGCLabelsFilterLayers)
	return all, images.Walk(ctx, keep, index.Manifests...)
}

// serve returns a client that finds everything in the spool.
func (s *spool) serve(c *containerd.Client) (*containerd.Client, error) {
	conn, ok := c.Conn().(*grpc.ClientConn)
	if !ok {
		return nil, errors.New("containerd is not reached by a connection of its own")
	}
	return containerd.NewWithConn(conn, containerd.WithServices(containerd.WithContentStore(s), containerd.WithDiffService(newUnpacker(c.DiffService(), s))))
}

func (s *spool) layer(d digest.Digest) *spooled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.layers[d]
}

func (s *spool) keep(layer *spooled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := layer.Digest(); s.layers[d] == nil {
		s.layers[d] = layer
	}
}

// Writer implements content.Ingester.
func (s *spool) Writer(ctx context.Context, options ...content.WriterOpt) (content.Writer, error) {
	var o content.WriterOpts
	for _, option := range options {
		if err := option(&o); err != nil {
			return nil, err
		}
	}
	if o.Desc.Size < smallestLayer {
		return s.Store.Writer(ctx, options...)
	}
	return s.newLayer(o.Ref)
}

// ReaderAt implements content.Provider.
func (s *spool) ReaderAt(ctx context.Context, desc ocispec.Descriptor) (content.ReaderAt, error) {
	if layer := s.layer(desc.Digest); layer != nil {
		return layer.reader(), nil
	}
	return s.Store.ReaderAt(ctx, desc)
}

// Info implements content.InfoProvider.
func (s *spool) Info(ctx context.Context, d digest.Digest) (content.Info, error) {
	if layer := s.layer(d); layer != nil {
		return content.Info{Digest: d, Size: layer.size}, nil
	}
	return s.Store.Info(ctx, d)
}

// Update implements content.Manager. A layer will not be there long enough for
// labels to be of use.
func (s *spool) Update(ctx context.Context, info content.Info, paths ...string) (content.Info, error) {
	if s.layer(info.Digest) != nil {
		return info, nil
	}
	return s.Store.Update(ctx, info, paths...)
}

// spooled is a layer, and its writer until it is committed.
type spooled struct {
	spool  *spool
	ref    string
	file   *os.File
	size   int64
	digest digest.Digester
}

// newLayer makes a file that is gone as soon as nobody has it open, whatever
// becomes of us.
func (s *spool) newLayer(ref string) (content.Writer, error) {
	file, err := os.CreateTemp(s.dir, "layer-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}
	return &spooled{spool: s, ref: ref, file: file, digest: digest.Canonical.Digester()}, nil
}

func (l *spooled) Write(p []byte) (int, error) {
	n, err := l.file.Write(p)
	l.size += int64(n)
	_, _ = l.digest.Hash().Write(p[:n]) // never fails
	return n, err
}

func (l *spooled) Digest() digest.Digest { return l.digest.Digest() }

func (l *spooled) Status() (content.Status, error) {
	return content.Status{Ref: l.ref, Offset: l.size}, nil
}

// Commit has the spool keep the layer, if it is what was expected.
func (l *spooled) Commit(_ context.Context, size int64, expected digest.Digest, _ ...content.Opt) error {
	if size > 0 && size != l.size || expected != "" && expected != l.Digest() {
		return errors.Join(errors.New("layer "+l.Digest().String()+" is not what was expected: "+expected.String()), l.file.Close())
	}
	l.spool.keep(l)
	return nil
}

// Truncate is asked for by who starts a blob again.
func (l *spooled) Truncate(size int64) error {
	if size != 0 {
		return errors.New("a layer can only be started again from its beginning")
	}
	l.size = 0
	l.digest = digest.Canonical.Digester()
	_, err := l.file.Seek(0, io.SeekStart)
	return errors.Join(err, l.file.Truncate(0))
}

// Close drops a layer that the spool does not keep.
func (l *spooled) Close() error {
	if l.spool.layer(l.Digest()) == l {
		return nil
	}
	return l.file.Close()
}

func (l *spooled) reader() content.ReaderAt {
	return layerReader{io.NewSectionReader(l.file, 0, l.size)}
}

type layerReader struct{ *io.SectionReader }

func (layerReader) Close() error { return nil }
