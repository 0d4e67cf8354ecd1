package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// From is where the stores of this host get images from.
type From string

// The places, in the order of their priority.
const (
	FromBundle   From = "bundle"   // the user names it
	FromRegistry From = "registry" // the user or the cluster names it
	FromDocker   From = "docker"   // the user has loaded them into the main Docker by hand
	FromHost     From = "host"     // the bundle at offline.HostPath, which Supply may have to bring
)

// ImagesFrom returns where images come from. If a bundle and a registry are set, the images
// of the cluster come from the bundle, and only later pods use the registry.
func (h *Host) ImagesFrom() From {
	switch {
	case h.Config.Bundle != "" && !bundleGone(h):
		return FromBundle
	case h.Registry != nil:
		return FromRegistry
	case h.ByHand:
		return FromDocker
	}
	return FromHost
}

// bundleGone reports whether the bundle that this host was loaded from is gone, or Foreign. The
// host may not need it any more.
func bundleGone(h *Host) bool {
	path := h.Config.Bundle
	loaded := h.Saved.Role != "" && h.Saved.Config.Bundle == path
	return loaded && (!h.Files.Exists(path) || Foreign(h, "bundle", path))
}

// Supply brings a bundle to offline.HostPath. The zero Supply does nothing: the bundle is
// there, or this host needs none.
type Supply struct {
	Plan  step.Plan
	Note  string // what Plan does, for the user
	Bytes int64  // of a pull; the space on the disk that it needs is a multiple
}

// supply decides how the bundle of this host comes here, if the host lacks images: from the
// cache, else from the official registries.
func (h *Host) supply(ctx context.Context, role string) error {
	if h.ImagesFrom() != FromHost {
		return nil
	}
	from := h.Source()
	from.Images = h.ImagesOf(role)
	err := from.Fits(from.Path)
	if err == nil || !LacksImages(ctx, h, role) {
		return untrusted(err)
	}
	if path := from.Cached(); path != "" {
		h.Supply = Supply{Plan: step.Plan{{from.SaveBundle(path)}}, Note: "the bundle " + path + " of the cache is used"}
		return nil
	}
	switch {
	case h.Offer != nil:
		h.Supply = Supply{Note: "they are fetched from a control plane", Bytes: h.Offer.Bytes()}
		return nil
	case errors.Is(h.OfferErr, bundle.ErrUntrusted):
		return untrusted(h.OfferErr)
	}
	return pull(ctx, h)
}

// untrusted returns the problem that the bundle on this host is not signed as it must be.
func untrusted(err error) error {
	if !errors.Is(err, bundle.ErrUntrusted) && !errors.Is(err, bundle.ErrKey) {
		return nil
	}
	return &step.Problem{Name: "bundle", Firm: true, Text: err.Error(),
		Remedy: "give a bundle that is signed with this key with --bundle, or remove the key with --verify-key \"\""}
}

// LacksImages reports whether a store of this host, or its directory of CNI plugins, lacks
// something that a host with role needs and only a bundle has.
func LacksImages(ctx context.Context, h *Host, role string) bool {
	from := h.Source()
	// Names suffice: without a source there is nothing to compare the images with.
	from.Path, from.Offered, from.Images = "", nil, h.ImagesOf(role)
	looks := step.Plan{append(h.Stores().LoadAll(from), from.InstallCNIPlugins())}
	return slices.ContainsFunc((&step.Runner{}).Check(ctx, looks), func(f step.Finding) bool {
		return errors.Is(f.Err, fs.ErrNotExist)
	})
}

// pullDir is where a pull keeps what it has fetched until the bundle is complete. It is on
// this host, and not in the cache of a user, so that turndown removes what a killed run has
// left.
const pullDir = host.StateDir + "/pull"

// pull makes a pull from the official registries the supply of this host, if they can be
// reached and have everything.
func pull(ctx context.Context, h *Host) error {
	if err := unpullable(h); err != nil {
		return err
	}
	if Foreign(h, "caFile", h.Config.CAFile) {
		return ForeignError("caFile", h.Config.CAFile)
	}
	o, err := offline.PullOptions{
		Versions: h.Versions, Archs: []string{h.Config.Arch}, Addons: append([]string{}, h.Config.Addons...),
		Output: h.Files.Path(offline.HostPath), Work: h.Files.Path(pullDir), Quick: true,
	}.From(h.Config)
	if err != nil {
		return err
	}
	p, err := offline.NewPull(o)
	if err != nil {
		return err
	}
	if err := p.Reachable(ctx); err != nil {
		return noImages(h, err)
	}
	if err := p.LookUp(ctx); err != nil {
		return err
	}
	h.Supply = Supply{Plan: p.Plan(), Bytes: p.Bytes()}
	h.Supply.Note = fmt.Sprintf("%d images and files, %s, are pulled from %s",
		len(p.Origins()), offline.Megabytes(h.Supply.Bytes), strings.Join(p.Hosts(), ", "))
	return nil
}

// unpullable returns the problem that no pull can provide the images of this host.
func unpullable(h *Host) error {
	if h.Config.VerifyKey != "" {
		return &step.Problem{Name: "images", Firm: true,
			Text: "verifyKey requires a signed bundle, and images that are pulled have no signature of it",
			Remedy: "give a signed bundle with --bundle (`kube-bootstrap offline pull --sign-key` makes it), " +
				"or remove the key with --verify-key \"\""}
	}
	if !slices.Contains(image.OfficialArchs, h.Config.Arch) {
		return noImages(h, fmt.Errorf("upstream publishes none for %s", h.Config.Arch))
	}
	return nil
}

// noImages returns the problem that this host lacks images and cannot pull them.
func noImages(h *Host, because error) error {
	reasons := []string{because.Error()}
	if problems := step.Problems(because); len(problems) > 0 {
		reasons = nil
		for _, p := range problems {
			reasons = append(reasons, p.Text)
		}
	}
	if h.OfferErr != nil {
		return notOffered(h, strings.Join(reasons, "; "))
	}
	return &step.Problem{
		Name: "images", Firm: true,
		Text: fmt.Sprintf("this host lacks images of Kubernetes %s, has no bundle of them, and cannot pull them: %s",
			h.Versions.Kubernetes, strings.Join(reasons, "; ")),
		Remedy: "run `kube-bootstrap offline pull` on a machine with access, copy its bundle here and give it with " +
			"--bundle; or build a bundle from source with `kube-bootstrap offline build`; " +
			"or name a private registry that has the images with --registry",
	}
}
