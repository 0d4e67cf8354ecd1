package offline

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// dockerTable is where a Docker without containerd's store looks for images.
const dockerTable = "manifest.json"

// dockerImage is an element of manifest.json in a `docker save` archive.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeArchive writes images for one architecture as a tar that is both a
// `docker save` archive, which every Docker reads, and an OCI layout, which
// containerd reads.
func (b *Bundle) writeArchive(ctx context.Context, w io.Writer, entries []Entry, arch string, progress io.Writer) error {
	blobs, old, index := b.plan(entries, arch)
	archive := tar.NewWriter(w)
	for _, member := range []struct {
		name  string
		value any
	}{
		{ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}},
		{ocispec.ImageIndexFile, index},
		{dockerTable, old},
	} {
		if err := writeJSON(archive, member.name, member.value); err != nil {
			return err
		}
	}
	err := b.feed.take(ctx, b, blobs, func(d digest.Digest) (io.Writer, error) {
		return io.MultiWriter(archive, progress), archive.WriteHeader(header(blobName(d), b.Blobs[d].Size))
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

// plan lists the blobs that the images need, each once, and both tables.
func (b *Bundle) plan(entries []Entry, arch string) (blobs []digest.Digest, old []dockerImage, index ocispec.Index) {
	seen := map[digest.Digest]bool{}
	need := func(all ...digest.Digest) {
		for _, d := range all {
			if !seen[d] {
				seen[d], blobs = true, append(blobs, d)
			}
		}
	}
	index.SchemaVersion, index.MediaType = 2, ocispec.MediaTypeImageIndex
	for _, e := range entries {
		v := e.Variants[arch]
		need(v.Manifest, v.Config)
		need(v.Layers...)
		old = append(old, e.docker(arch, e.Ref))
		index.Manifests = append(index.Manifests, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: v.Manifest,
			Size: b.Blobs[v.Manifest].Size, Platform: ociPlatform(arch),
			Annotations: map[string]string{ocispec.AnnotationRefName: e.Ref, annotationName: e.Ref}})
	}
	return blobs, old, index
}

func (e Entry) docker(arch, ref string) dockerImage {
	v := e.Variants[arch]
	d := dockerImage{Config: blobName(v.Config), RepoTags: []string{ref}}
	for _, l := range v.Layers {
		d.Layers = append(d.Layers, blobName(l))
	}
	return d
}

// dockerTable lets `docker load` read a whole bundle. It has one name for one
// image: where there are several architectures, each goes by its own, as
// images did before there were manifest lists: pause-arm64:3.10.2.
func (m Manifest) dockerTable() (table []dockerImage) {
	archs := m.Archs()
	for _, e := range m.Images {
		for _, arch := range archs {
			if e.Variants[arch].Manifest == "" {
				continue
			}
			ref := e.Ref
			if len(archs) > 1 {
				ref = withArch(ref, arch)
			}
			table = append(table, e.docker(arch, ref))
		}
	}
	return table
}

func withArch(ref, arch string) string {
	i := strings.LastIndex(ref, ":")
	return ref[:i] + "-" + arch + ref[i:]
}

func ociPlatform(arch string) *ocispec.Platform {
	p := image.Platform(arch)
	return &ocispec.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant}
}

func (b *Bundle) sizeOf(entries []Entry, arch string) (total int64) {
	blobs, _, _ := b.plan(entries, arch)
	for _, d := range blobs {
		total += b.Blobs[d].Size
	}
	return total
}

func (b *Bundle) read(ctx context.Context, entries []Entry, arch string) archives {
	return &reading{Bundle: b, ctx: ctx, arch: arch, progress: newProgress(ctx, "load images", b.sizeOf(entries, arch))}
}

// reading opens archives for one architecture, which count towards the same
// progress, and remembers what was wrong with the bundle.
type reading struct {
	*Bundle
	ctx      context.Context
	arch     string
	progress io.Writer

	mu    sync.Mutex
	wrong error
}

func (r *reading) open(entries ...Entry) io.ReadCloser {
	return piped(func(w io.Writer) error {
		err := r.writeArchive(r.ctx, w, entries, r.arch, r.progress)
		r.note(err)
		return err
	})
}

// note keeps the first error that is not of the store's making: one that has
// enough closes the pipe.
func (r *reading) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrong == nil && !errors.Is(err, io.ErrClosedPipe) && r.ctx.Err() == nil {
		r.wrong = err
	}
}

func (r *reading) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrong
}
