package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Programs say which programs of Kubernetes are built from a checkout, for a
// bundle that has them instead of those of another one, its base.
type Programs struct {
	Base   string            // the bundle with everything else
	Output string            // where to write it
	K8sDir string            // the checkout
	Build  []string          // names of programs; none: all
	Keep   map[string]string // versions of programs that were built earlier and are not built now
}

// BuildPrograms compiles the programs and writes those that differ from the
// release into a bundle. It returns the versions of what is in it and in its base.
func BuildPrograms(ctx context.Context, p Programs) (image.Versions, error) {
	base, err := Open(p.Base)
	if err != nil {
		return image.Versions{}, err
	}
	defer base.Close()
	v := base.Versions
	built, err := p.build(ctx, base, &v)
	if err != nil {
		return v, err
	}
	o := Options{Versions: v, Output: p.Output, Quick: true}
	return v, o.put(ctx, built, func(c *contents) error { return c.buildOn(base) })
}

// build makes the images of the programs, and notes their versions.
func (p Programs) build(ctx context.Context, base *Bundle, v *image.Versions) ([]image.Built, error) {
	builder := &image.Builder{Cache: image.CacheDir(), K8sDir: p.K8sDir}
	parts, err := p.parts(ctx, builder, v)
	if err != nil {
		return nil, err
	}
	hyperkube, err := base.layersOf(image.Ref(*v, "hyperkube"), runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	var built []image.Built
	for _, img := range image.Catalogue(*v, "") {
		if _, err := base.Manifest.find(img.Ref, runtime.GOARCH); err == nil {
			continue
		}
		one, err := builder.ProgramImage(ctx, img, runtime.GOARCH, hyperkube, parts)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", img.Ref, err)
		}
		built = append(built, one)
	}
	return built, nil
}

// parts are the programs that differ from those of the release.
func (p Programs) parts(ctx context.Context, builder *image.Builder, v *image.Versions) (map[string]image.Part, error) {
	names := p.Build
	if len(names) == 0 {
		names = image.Programs()
	}
	changed, err := builder.Changed(ctx, *v, runtime.GOARCH, names)
	if err != nil {
		return nil, err
	}
	versions := maps.Clone(changed)
	for name, version := range p.Keep {
		if _, now := changed[name]; !now {
			versions[name] = version
		}
	}
	maps.DeleteFunc(versions, func(_, version string) bool { return version == "" })
	parts := map[string]image.Part{}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if _, now := changed[name]; now {
			parts[name], err = builder.Program(ctx, *v, runtime.GOARCH, name, versions[name])
		} else {
			parts[name], err = builder.KeptProgram(*v, runtime.GOARCH, name, versions[name])
		}
		if err != nil {
			return nil, err
		}
	}
	v.Programs = versions
	return parts, builder.DropOldPrograms(runtime.GOARCH, slices.Collect(maps.Keys(changed)))
}

// buildOn leaves out what another bundle has, and takes over its images. What
// is left is packed in a moment, and another thing after the next edit: it is
// not worth a place in the cache.
func (c *contents) buildOn(base *Bundle) error {
	c.cache = ""
	if err := c.leaveOut(base); err != nil {
		return err
	}
	c.manifest.Images = append(slices.Clone(base.Images), c.manifest.Images...)
	maps.Copy(c.manifest.Plugins, base.Plugins)
	for d, blob := range base.Blobs {
		c.manifest.Blobs[d] = Blob{Size: blob.Size, InBase: true}
	}
	own := c.index.Manifests
	c.index.Manifests = nil
	for _, e := range base.Images {
		c.index.Manifests = append(c.index.Manifests, e.descriptor(base.Blobs[e.Index].Size))
	}
	c.index.Manifests = append(c.index.Manifests, own...)
	return nil
}

// descriptor is how other tools find an image.
func (e Entry) descriptor(size int64) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: e.Index, Size: size,
		Annotations: map[string]string{ocispec.AnnotationRefName: e.Ref, annotationName: e.Ref}}
}

// layersOf are the layers of an image, to build others on.
func (b *Bundle) layersOf(ref, arch string) (all []v1.Layer, err error) {
	e, err := b.find(ref, arch)
	for _, d := range e.Variants[arch].Layers {
		all = append(all, layerInBase{d, b.Blobs[d].Size})
	}
	return all, err
}

// layerInBase is a layer that is written nowhere, as the base has it.
type layerInBase struct {
	digest digest.Digest
	size   int64
}

var errInBase = errors.New("this layer is only in the base")

func (l layerInBase) Digest() (v1.Hash, error)             { return v1.NewHash(l.digest.String()) }
func (l layerInBase) DiffID() (v1.Hash, error)             { return l.Digest() }
func (l layerInBase) Compressed() (io.ReadCloser, error)   { return nil, errInBase }
func (l layerInBase) Uncompressed() (io.ReadCloser, error) { return nil, errInBase }
func (l layerInBase) Size() (int64, error)                 { return l.size, nil }
func (l layerInBase) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }
