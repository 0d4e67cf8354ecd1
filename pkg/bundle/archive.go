package bundle

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// dockerManifest is read by a Docker without containerd's image store.
const dockerManifest = "manifest.json"

// Archive is an archive of images on its way into a store.
type Archive struct {
	// Open returns the archive as a tar, which the caller must close.
	Open func() io.ReadCloser
	// Err returns the first error of the writer. A store reports only an unexpected end.
	Err func() error
}

// Archive returns an archive of images for one architecture. It is both a `docker save` archive, which every Docker
// reads, and an OCI image layout, which containerd reads.
func (b *Bundle) Archive(ctx context.Context, images []MultiPlatformImage, arch string) Archive {
	size := b.Manifest.SizeOf(b.Manifest.blobsOf(images, arch))
	w := &archiveWriter{bundle: b, ctx: ctx, images: images, arch: arch,
		progress: step.NewCounter(ctx, "load images", size)}
	return Archive{Open: w.open, Err: w.firstError}
}

// archiveWriter writes the archive into a pipe, in a goroutine of its own. It receives the blobs from the goroutine of
// the broadcast.
type archiveWriter struct {
	bundle   *Bundle
	ctx      context.Context
	images   []MultiPlatformImage
	arch     string
	progress io.Writer
	err      atomic.Pointer[error] // the first error, unless the store has closed the pipe
}

func (a *archiveWriter) open() io.ReadCloser {
	return Pipe(func(w io.Writer) error {
		err := a.write(w)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) && a.ctx.Err() == nil {
			a.err.CompareAndSwap(nil, &err)
		}
		return err
	})
}

func (a *archiveWriter) firstError() error {
	if err := a.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (a *archiveWriter) write(w io.Writer) error {
	manifest := a.bundle.Manifest
	tables, err := tables(manifest.indexesOf(a.images, a.arch))
	if err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	for _, t := range tables {
		if err := t.write(archive); err != nil {
			return err
		}
	}
	// The goroutine of the broadcast calls it too: a blob follows its tar header.
	writerFor := func(d digest.Digest) (io.Writer, error) {
		return io.MultiWriter(archive, a.progress), archive.WriteHeader(header(blobName(d), manifest.Blobs[d].Size))
	}
	// A store that has the configs can unpack each layer when it arrives.
	texts, layers := manifest.textsOf(a.images, a.arch), manifest.layersOf(a.images, a.arch)
	err = a.bundle.ReadBlobs(texts, func(d digest.Digest, copyTo func(io.Writer) error) error {
		to, err := writerFor(d)
		if err != nil {
			return err
		}
		return copyTo(to)
	})
	if err != nil {
		return err
	}
	if err := a.bundle.broadcast.copyTo(a.ctx, a.bundle, layers, writerFor); err != nil {
		return err
	}
	return archive.Close()
}

// blobsOf returns the blobs that an archive needs, each once.
func (m Manifest) blobsOf(images []MultiPlatformImage, arch string) []digest.Digest {
	return append(m.textsOf(images, arch), m.layersOf(images, arch)...)
}

// textsOf returns the manifests and configs of images, each once.
func (m Manifest) textsOf(images []MultiPlatformImage, arch string) (texts []digest.Digest) {
	for _, i := range images {
		texts = append(texts, i.Platforms[arch].Manifest, i.Platforms[arch].Config)
	}
	return once(texts)
}

// layersOf returns the layers of images, each once.
func (m Manifest) layersOf(images []MultiPlatformImage, arch string) (layers []digest.Digest) {
	for _, i := range images {
		layers = append(layers, i.Platforms[arch].Layers...)
	}
	return once(layers)
}

// once returns the blobs without repetitions.
func once(blobs []digest.Digest) []digest.Digest {
	seen := map[digest.Digest]bool{}
	return slices.DeleteFunc(blobs, func(d digest.Digest) bool {
		was := seen[d]
		seen[d] = true
		return was
	})
}

// indexesOf returns the content of index.json and manifest.json of an archive.
func (m Manifest) indexesOf(images []MultiPlatformImage, arch string) (index ocispec.Index, docker tarball.Manifest) {
	index.SchemaVersion, index.MediaType = 2, ocispec.MediaTypeImageIndex
	platform := image.Platform(arch)
	for _, i := range images {
		p := i.Platforms[arch]
		docker = append(docker, p.docker(i.Ref))
		one := i.descriptor(ocispec.MediaTypeImageManifest, p.Manifest, m.Blobs[p.Manifest].Size)
		one.Platform = &ocispec.Platform{OS: platform.OS, Architecture: arch, Variant: platform.Variant}
		index.Manifests = append(index.Manifests, one)
	}
	return index, docker
}

func (p PlatformImage) docker(ref string) tarball.Descriptor {
	d := tarball.Descriptor{Config: blobName(p.Config), RepoTags: []string{ref}}
	for _, l := range p.Layers {
		d.Layers = append(d.Layers, blobName(l))
	}
	return d
}

// dockerManifest returns the member with which `docker load` reads a whole bundle. It allows only one image per name.
// If there are several architectures, each image is named after its own, as before manifest lists existed:
// pause-arm64:3.10.2.
func (m Manifest) dockerManifest() (all tarball.Manifest) {
	archs := m.Archs()
	for _, i := range m.Images {
		for _, arch := range archs {
			p := i.Platforms[arch]
			if p.Manifest == "" {
				continue
			}
			ref := i.Ref
			if len(archs) > 1 {
				tag := strings.LastIndex(ref, ":")
				ref = ref[:tag] + "-" + arch + ref[tag:]
			}
			all = append(all, p.docker(ref))
		}
	}
	return all
}

// SizeOf returns the size of blobs in bytes.
func (m Manifest) SizeOf(blobs []digest.Digest) (total int64) {
	for _, d := range blobs {
		total += m.Blobs[d].Size
	}
	return total
}
