package offline

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline/programs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// HostPath is the default path of the bundle on a host.
const HostPath = host.StateDir + "/bundle.tar.zst"

// BuildOptions are the options of NewBuild.
type BuildOptions struct {
	Versions  image.Versions
	Archs     []string        // none: this machine's
	Images    []string        // by name, "pause"; none: all that a cluster needs
	Output    string          // "": DefaultPath
	BaseImage string          // userland of the images, instead of Debian packages
	K8sDir    string          // a checkout of Kubernetes to build, instead of the module
	Base      string          // path of a bundle; the new bundle omits the blobs of that bundle
	SignKey   string          // file of the key to sign with
	Quick     bool            // compress for this machine, where size is no matter
	Programs  programs.Source // kube-bootstrap itself, for the architectures
	cache     string          // directory of compressed parts; "": that of the user
}

// DefaultPath is the default path of a bundle that a Build writes.
func DefaultPath(v image.Versions, what ...string) string {
	return filepath.Join(cache.Dir(), "bundles", "kubernetes-"+v.Kubernetes+"-"+strings.Join(what, "-")+".tar.zst")
}

// Build is a build of images from source.
type Build struct {
	Bundle string       // path of the bundle that the plan writes
	Plan   step.Plan    // compiles a program in each stage, and then writes the bundle
	Effort image.Effort // of what is not in the cache
}

// NewBuild returns a build of all images into a bundle. It does not write the file again if the
// file already has the same contents.
func NewBuild(ctx context.Context, o BuildOptions) (Build, error) {
	if len(o.Archs) == 0 {
		o.Archs = []string{runtime.GOARCH}
	}
	o.Output = cmp.Or(o.Output, DefaultPath(o.Versions, slices.Concat(o.Archs, o.Images)...))
	if len(o.wanted()) < len(o.Images) {
		return Build{}, fmt.Errorf("images %s: one of them is none of a cluster's, or is named twice",
			strings.Join(o.Images, ","))
	}
	// A wrong key, base or program must be reported before the build, which takes minutes.
	configure, err := o.configure()
	if err == nil {
		err = o.Programs.Check(o.Archs)
	}
	if err != nil {
		return Build{}, err
	}
	return o.plan(ctx, configure)
}

func (o BuildOptions) plan(ctx context.Context, configure func(*bundle.Builder) error) (Build, error) {
	builder := &image.Builder{Cache: cache.Dir(), BaseImage: o.BaseImage, K8sDir: o.K8sDir}
	b := Build{Bundle: o.Output}
	var all []image.Pending
	for _, arch := range o.Archs {
		pending, err := builder.Pending(ctx, o.Versions.Recipes(o.wanted()), arch)
		if err != nil {
			return b, err
		}
		all = append(all, pending...)
	}
	b.Plan = step.Plan{{builder.Release(all)}}
	for _, p := range all {
		b.Plan = append(b.Plan, []step.Step{builder.Step(p)})
	}
	b.Effort = builder.Effort(all, runtime.NumCPU())
	b.Plan = append(b.Plan, []step.Step{step.Always("build-images",
		"build the images of Kubernetes "+o.Versions.Kubernetes, func(ctx context.Context) error {
			built, err := o.images(ctx, builder)
			if err != nil {
				return err
			}
			return o.write(ctx, built, configure)
		})})
	return b, nil
}

// write writes a bundle of the images, unless the file has the same contents.
func (o BuildOptions) write(ctx context.Context, built []image.Built, configure func(*bundle.Builder) error) error {
	b, err := bundle.NewBuilder(o.Versions, built)
	if err == nil {
		b.Cache = cmp.Or(o.cache, b.Cache)
		err = configure(b)
	}
	if err == nil && !o.Quick {
		b.CompressUltra(ctx)
	}
	if err != nil || b.Wrote(o.Output, o.Quick) {
		return err
	}
	return step.Wrap(b.Write(ctx, o.Output), "write bundle %s", o.Output)
}

func (o BuildOptions) wanted() []image.Image {
	return slices.DeleteFunc(image.Catalogue(o.Versions, ""), func(i image.Image) bool {
		return len(o.Images) > 0 && !slices.Contains(o.Images, i.Name)
	})
}

// images builds all images for all architectures.
func (o BuildOptions) images(ctx context.Context, builder *image.Builder) (built []image.Built, err error) {
	for _, arch := range o.Archs {
		for _, img := range o.wanted() {
			one, err := builder.Build(ctx, o.Versions, img, arch)
			if err != nil {
				return nil, fmt.Errorf("build %s: %w", img.Ref, err)
			}
			built = append(built, one)
		}
	}
	own, err := o.Programs.Images(ctx, builder.Cache, o.Archs)
	return append(built, own...), err
}

// configure reads the key and the base, and returns a function that applies them.
func (o BuildOptions) configure() (configure func(*bundle.Builder) error, err error) {
	var key ed25519.PrivateKey
	if o.SignKey != "" {
		if key, err = bundle.ReadSigningKey(o.SignKey); err != nil {
			return nil, fmt.Errorf("sign key: %w", err)
		}
	}
	var base *bundle.Bundle
	if o.Base != "" {
		if base, err = bundle.Open(o.Base); err != nil {
			return nil, fmt.Errorf("base: %w", err)
		}
		defer base.Close() // only the manifest is needed
	}
	return func(b *bundle.Builder) error {
		b.SignBy(key)
		if base == nil {
			return nil
		}
		return b.ExcludeBase(base)
	}, nil
}

// ProgramOptions are the options of BuildPrograms.
type ProgramOptions struct {
	Base   string            // path of the bundle that is extended
	Output string            // path of the new bundle
	K8sDir string            // a checkout of Kubernetes
	Build  []string          // names of programs; none: all
	Keep   map[string]string // versions of programs that were built earlier and are not built now
}

// BuildPrograms compiles programs of Kubernetes from a checkout and writes those that differ from
// the release into a bundle, which extends the base. It returns the versions of all contents.
func BuildPrograms(ctx context.Context, p ProgramOptions) (image.Versions, error) {
	base, err := bundle.Open(p.Base)
	if err != nil {
		return image.Versions{}, err
	}
	defer base.Close()
	v := base.Manifest.Versions
	built, err := p.build(ctx, base, &v)
	if err != nil {
		return v, err
	}
	o := BuildOptions{Versions: v, Output: p.Output, Quick: true}
	return v, o.write(ctx, built, func(b *bundle.Builder) error { return b.Extend(base) })
}

// build builds the images of the programs and sets their versions in v.
func (p ProgramOptions) build(
	ctx context.Context, base *bundle.Bundle, v *image.Versions,
) (built []image.Built, err error) {
	builder := &image.Builder{Cache: cache.Dir(), K8sDir: p.K8sDir}
	parts, err := p.parts(ctx, builder, v)
	if err != nil {
		return nil, err
	}
	hyperkube, err := base.Layers(image.Ref(*v, "hyperkube"), runtime.GOARCH)
	if err != nil {
		return nil, err
	}
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
func (p ProgramOptions) parts(
	ctx context.Context, builder *image.Builder, v *image.Versions,
) (map[string]cache.Part, error) {
	names := p.Build
	if len(names) == 0 {
		names = image.Programs()
	}
	changed, err := builder.Changed(ctx, *v, runtime.GOARCH, names)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	maps.Copy(versions, p.Keep)
	maps.Copy(versions, changed)
	maps.DeleteFunc(versions, func(_, version string) bool { return version == "" })
	parts := map[string]cache.Part{}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if _, now := changed[name]; now {
			parts[name], err = builder.Program(ctx, *v, runtime.GOARCH, name, versions[name])
		} else {
			parts[name], err = builder.CachedProgram(*v, runtime.GOARCH, name, versions[name])
		}
		if err != nil {
			return nil, err
		}
	}
	v.Programs = versions
	return parts, builder.DropOldPrograms(runtime.GOARCH, slices.Collect(maps.Keys(changed)))
}
