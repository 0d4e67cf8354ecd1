package offline

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

// Programs are the options of BuildPrograms.
type Programs struct {
	Base   string            // path of the bundle that is extended
	Output string            // path of the new bundle
	K8sDir string            // a checkout of Kubernetes
	Build  []string          // names of programs; none: all
	Keep   map[string]string // versions of programs that were built earlier and are not built now
}

// BuildPrograms compiles programs of Kubernetes from a checkout and writes those
// that differ from the release into a bundle, which extends the base. It returns
// the versions of all contents.
func BuildPrograms(ctx context.Context, p Programs) (image.Versions, error) {
	base, err := bundle.Open(p.Base)
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
	return v, o.write(ctx, built, func(b *bundle.Builder) error { return b.Extend(base) })
}

// build builds the images of the programs and sets their versions in v.
func (p Programs) build(ctx context.Context, base *bundle.Bundle, v *image.Versions) ([]image.Built, error) {
	builder := &image.Builder{Cache: cache.Dir(), K8sDir: p.K8sDir}
	parts, err := p.parts(ctx, builder, v)
	if err != nil {
		return nil, err
	}
	hyperkube, err := base.Layers(image.Ref(*v, "hyperkube"), runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	var built []image.Built
	for _, img := range image.Catalogue(*v, "") {
		if _, err := base.Find(img.Ref, runtime.GOARCH); err == nil {
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

// parts returns the programs that differ from the release, and sets v.Programs.
func (p Programs) parts(ctx context.Context, builder *image.Builder, v *image.Versions) (map[string]cache.Part, error) {
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
	parts := map[string]cache.Part{}
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
