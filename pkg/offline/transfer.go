package offline

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/fetch"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// PullOptions say what to pull, and from where.
type PullOptions struct {
	Versions image.Versions
	Archs    []string // none: this machine's
	Output   string   // "": PulledPath
	Base     string   // path of a bundle whose blobs are left out
	SignKey  string   // path of the signing key
	Quick    bool     // compress fast, for a bundle that stays on this machine
	Sites    image.Sites
	Client   *fetch.Client
}

// PulledPath returns the default path of a pulled bundle. A built bundle of the same versions has
// other content, and so another path.
func PulledPath(v image.Versions, archs ...string) string {
	return DefaultPath(v, append(slices.Clone(archs), "official")...)
}

// PullFrom lists the official images and files that a pull needs.
func PullFrom(o PullOptions) (all []image.Origin) {
	for _, arch := range o.withDefaults().Archs {
		all = append(all, image.Origins(o.Versions, o.Sites, arch)...)
	}
	return all
}

func (o PullOptions) withDefaults() PullOptions {
	if len(o.Archs) == 0 {
		o.Archs = []string{runtime.GOARCH}
	}
	o.Output = cmp.Or(o.Output, PulledPath(o.Versions, o.Archs...))
	return o
}

// Pull returns the plan that writes a bundle of all images and files to path. It looks up all of
// them before it fetches any, and fetches none again.
func Pull(o PullOptions) (plan step.Plan, path string, err error) {
	o = o.withDefaults()
	p := &pull{PullOptions: o}
	if p.configure, err = (Options{Base: o.Base, SignKey: o.SignKey}).configure(); err != nil {
		return nil, "", err
	}
	var stage []step.Step
	for _, from := range PullFrom(o) {
		one := &pulled{Origin: from, client: o.Client}
		p.all = append(p.all, one)
		stage = append(stage, one.step())
	}
	return step.Plan{stage, {p.write()}}, o.Output, nil
}

type pull struct {
	PullOptions
	all       []*pulled
	configure func(*bundle.Builder) error
}

// pulled is an image or file that is fetched.
type pulled struct {
	image.Origin
	client *fetch.Client
	found  *fetch.Found // once it was looked up
}

func (p *pulled) step() step.Step {
	return step.Step{
		Name: fmt.Sprintf("pull %s for %s", p.Name, p.Arch),
		Check: func(ctx context.Context) (step.Diff, error) {
			if err := p.lookUp(ctx); err != nil {
				return nil, err
			}
			if p.found.Here() {
				return nil, nil
			}
			return step.Diff{"fetch " + p.Where()}, nil
		},
		Apply: func(ctx context.Context) error { return p.found.Fetch(ctx) },
	}
}

func (p *pulled) lookUp(ctx context.Context) (err error) {
	if p.found != nil {
		return nil
	}
	if p.URL != "" {
		p.found, err = p.client.File(ctx, p.URL)
	} else {
		p.found, err = p.client.Image(ctx, p.Ref, image.Platform(p.Arch))
	}
	return err
}

// write returns the step that writes the bundle.
func (p *pull) write() step.Step {
	return step.Step{
		Name:  "put the bundle together",
		Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{"write " + p.Output}, nil },
		Apply: func(ctx context.Context) error {
			built, err := p.compose(ctx)
			if err != nil {
				return err
			}
			return Options{Versions: p.Versions, Output: p.Output, Quick: p.Quick}.write(ctx, built, p.configure)
		},
	}
}

func (p *pull) compose(ctx context.Context) (built []image.Built, err error) {
	builder := &image.Builder{Cache: cache.Dir()}
	for _, arch := range p.Archs {
		for _, img := range image.Published(p.Versions, arch) {
			one, err := builder.Compose(ctx, p.Versions, img, arch, p.origins(arch))
			if err != nil {
				return nil, fmt.Errorf("put %s for %s together: %w", img.Ref, arch, err)
			}
			built = append(built, one)
		}
	}
	return built, nil
}

// origins returns what was fetched for an architecture, by name.
func (p *pull) origins(arch string) map[string]image.Fetched {
	all := map[string]image.Fetched{}
	for _, one := range p.all {
		if one.Arch == arch {
			all[one.Name] = image.Fetched{Origin: one.Origin, Digest: one.found.Digest, Paths: one.found.Paths()}
		}
	}
	return all
}

// Push uploads all images of the bundle at path to a registry.
func Push(ctx context.Context, path string, to *registry.Registry, options ...bundle.Option) ([]artifact.Pushed, error) {
	b, err := bundle.Open(path, options...)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return artifact.Push(ctx, b, to)
}
