package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/fetch"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline/programs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// PullOptions state what to pull, and from where.
type PullOptions struct {
	Versions image.Versions
	Archs    []string        // none: this machine's
	Addons   []string        // whose images are pulled too; nil: those of all addons
	Output   string          // "": PulledPath
	Base     string          // path of a bundle whose blobs are left out
	SignKey  string          // path of the signing key
	Quick    bool            // compress fast, for a bundle that stays on this machine
	Programs programs.Source // kube-bootstrap itself, for the architectures
	Sites    image.Sites
	Client   *fetch.Downloader
	// Work is the directory of the downloads, which the pull removes at its end; "": the
	// cache, which stays.
	Work string
}

// From sets from where to pull to what the settings say: mirrors, authorities.
func (o PullOptions) From(cfg config.Config) (PullOptions, error) {
	known := slices.DeleteFunc(slices.Clone(cfg.RegistryMirrors), func(m mirror.Mirror) bool {
		return !slices.Contains(image.Registries, m.Of) // of the pods
	})
	mirrors, err := fetch.MirrorsOf(known, image.Registries)
	if err != nil {
		return o, err
	}
	o.Sites.Kubernetes = cmp.Or(cfg.DownloadMirror.String(), image.OfficialSites.Kubernetes)
	o.Sites.CNI = cmp.Or(cfg.CNIMirror.String(), image.OfficialSites.CNI)
	o.Client, err = fetch.New(fetch.ClientOptions{
		Cache: o.work(), Mirrors: mirrors, CAFile: cfg.CAFile, Stall: cfg.StallTimeout, Plain: o.Sites.Plain(),
	})
	return o, err
}

func (o PullOptions) work() string { return cmp.Or(o.Work, cache.Dir()) }

// PulledPath returns the default path of a pulled bundle. A built bundle of the same versions has
// other content, and so another path.
func PulledPath(v image.Versions, archs ...string) string {
	return DefaultPath(v, append(slices.Clone(archs), "official")...)
}

// Origins lists the official images and files that a pull needs.
func (o PullOptions) Origins() (all []image.OfficialSource) {
	for _, arch := range o.withDefaults().Archs {
		all = append(all, image.Origins(o.Versions, o.images(arch), o.Sites, arch)...)
	}
	return all
}

// images lists the images to pull for an architecture.
func (o PullOptions) images(arch string) []image.Image {
	return slices.DeleteFunc(image.Published(o.Versions, arch), func(i image.Image) bool {
		return o.Addons != nil && i.Addon != "" && !slices.Contains(o.Addons, i.Addon)
	})
}

func (o PullOptions) withDefaults() PullOptions {
	if len(o.Archs) == 0 {
		o.Archs = []string{runtime.GOARCH}
	}
	o.Output = cmp.Or(o.Output, PulledPath(o.Versions, o.Archs...))
	return o
}

// Pull is a pull of official images and files into a bundle.
type Pull struct {
	PullOptions
	all       []*pulled
	configure func(*bundle.Builder) error
}

// NewPull returns a pull, and fetches nothing yet.
func NewPull(o PullOptions) (*Pull, error) {
	o = o.withDefaults()
	p := &Pull{PullOptions: o}
	for _, from := range o.Origins() {
		p.all = append(p.all, &pulled{OfficialSource: from, client: o.Client})
	}
	var err error
	p.configure, err = (BuildOptions{Base: o.Base, SignKey: o.SignKey}).configure()
	return p, errors.Join(err, o.Programs.Check(o.Archs))
}

// Plan returns the plan that writes the bundle. It looks up everything before it
// fetches anything, and fetches nothing again.
func (p *Pull) Plan() step.Plan {
	var stage []step.Step
	for _, one := range p.all {
		stage = append(stage, one.step())
	}
	return step.Plan{stage, {p.write()}}
}

// Reachable returns the problems of the servers that cannot be reached. It asks all at
// the same time and takes seconds at most.
func (p *Pull) Reachable(ctx context.Context) error {
	var servers []string
	for _, one := range p.all {
		server, err := one.server()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(servers, func(s string) bool { return sameHost(s, server) }) {
			servers = append(servers, server)
		}
	}
	errs := make([]error, len(servers))
	var group errgroup.Group
	for i, server := range servers {
		group.Go(func() error {
			errs[i] = p.Client.Reachable(ctx, server)
			return nil
		})
	}
	return errors.Join(group.Wait(), errors.Join(errs...))
}

func sameHost(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Host == y.Host
}

// Hosts returns the servers of everything, with regard to mirrors.
func (p *Pull) Hosts() (hosts []string) {
	for _, one := range p.all {
		server, err := one.server()
		if u, bad := url.Parse(server); err == nil && bad == nil && !slices.Contains(hosts, u.Host) {
			hosts = append(hosts, u.Host)
		}
	}
	return hosts
}

// LookUp looks up everything, so that a version that does not exist is found before
// anything is fetched.
func (p *Pull) LookUp(ctx context.Context) error {
	step.Report(ctx, "look up the official images", 0, 0)
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range p.all {
		group.Go(func() error {
			if err := one.lookUp(ctx); err != nil {
				return err
			}
			one.found.AskSize(ctx)
			return nil
		})
	}
	return group.Wait()
}

// Bytes returns the number of bytes to fetch, once everything was looked up.
func (p *Pull) Bytes() (n int64) {
	seen := map[digest.Digest]bool{}
	for _, one := range p.all {
		n += one.found.Missing(seen)
	}
	return n
}

// pulled is an image or file that is fetched.
type pulled struct {
	image.OfficialSource
	client *fetch.Downloader
	found  *fetch.Found // once it was looked up
}

func (p *pulled) server() (string, error) {
	if p.URL != "" {
		return p.URL, nil
	}
	return p.client.Server(p.Ref)
}

func (p *pulled) step() step.Step {
	return step.Step{
		ID: step.IDOf("pull", p.Name, p.Arch), Name: fmt.Sprintf("pull %s for %s", p.Name, p.Arch),
		Check: func(ctx context.Context) (step.Diff, error) {
			if err := p.lookUp(ctx); err != nil {
				return nil, err
			}
			if p.found.Here() {
				return nil, nil
			}
			return step.Diff{"fetch " + p.Where() + size(p.found.Missing(map[digest.Digest]bool{}))}, nil
		},
		Apply: func(ctx context.Context) error { return p.found.Fetch(ctx) },
	}
}

// size returns a size in megabytes in brackets, or nothing if it is unknown.
func size(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return " (" + Megabytes(bytes) + ")"
}

// Megabytes returns a size to read.
func Megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

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
func (p *Pull) write() step.Step {
	return step.Step{
		ID: "write-bundle", Name: "put the bundle together",
		Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{"write " + p.Output}, nil },
		Apply: func(ctx context.Context) error {
			built, err := p.compose(ctx)
			if err != nil {
				return err
			}
			err = BuildOptions{Versions: p.Versions, Output: p.Output, Quick: p.Quick, cache: p.Work}.write(ctx,
				built, p.configure)
			if err != nil || p.Work == "" {
				return err
			}
			return os.RemoveAll(p.Work)
		},
	}
}

func (p *Pull) compose(ctx context.Context) (built []image.Built, err error) {
	builder := &image.Builder{Cache: p.work()}
	for _, arch := range p.Archs {
		for _, img := range p.images(arch) {
			one, err := builder.Compose(ctx, p.Versions, img, arch, p.origins(arch))
			if err != nil {
				return nil, fmt.Errorf("put %s for %s together: %w", img.Ref, arch, err)
			}
			built = append(built, one)
		}
	}
	own, err := p.Programs.Images(ctx, p.work(), p.Archs)
	return append(built, own...), err
}

// origins returns what was fetched for an architecture, by name.
func (p *Pull) origins(arch string) map[string]image.Fetched {
	all := map[string]image.Fetched{}
	for _, one := range p.all {
		if one.Arch == arch {
			all[one.Name] = image.Fetched{
				OfficialSource: one.OfficialSource, Digest: one.found.Digest, Paths: one.found.Paths(),
			}
		}
	}
	return all
}
