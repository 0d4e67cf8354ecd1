package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// source returns the image source of this host.
func (h *Host) source() offline.Source {
	s := offline.Source{
		Path: h.Config.Bundle, Base: h.Config.BundleBase, VerifyKey: h.Config.VerifyKey, Versions: h.versions,
		Images: h.images, Arch: h.Config.Arch, Files: h.Files, KeepImages: h.Config.KeepImages, Broadcast: h.loads,
	}
	switch {
	case h.byHand:
		s.Docker = openDocker(mainSocket)
	case h.fromRegistry():
		s.Registry = h.registry
	case s.Path == "":
		s.Path = offline.HostPath
	}
	return s
}

// loadBootstrap loads one image, so that its container need not wait for the
// other images.
func (h *Host) loadBootstrap(name string) step.Step {
	from := h.source()
	from.Part = name
	from.Images = slices.DeleteFunc(slices.Clone(from.Images), func(i image.Image) bool { return i.Name != name })
	return from.Load(dockerStore{image.Bootstrap, bootstrapdocker.Socket}.open())
}

func (h *Host) loadMain() step.Step { return h.source().Load(h.mainStore()) }

func (h *Host) loadContainerd() step.Step { return h.source().Load(h.podStore()) }

// dropReplaced removes the images of earlier versions that nothing uses any
// more.
func (h *Host) dropReplaced() []step.Step {
	return []step.Step{h.source().Drop(h.mainStore()), h.source().Drop(h.podStore())}
}

func (h *Host) mainStore() imagestore.Target { return dockerStore{image.Main, mainSocket}.open() }

func (h *Host) podStore() imagestore.Target {
	return imagestore.Containerd(h.criSocket(), "", host.StateDir)
}

// podImages lists the images of the catalogue for pods.
func (h *Host) podImages() []string {
	var refs []string
	for _, i := range h.images {
		if slices.Contains(i.Stores, image.Containerd) {
			refs = append(refs, i.Ref)
		}
	}
	return refs
}

type dockerStore struct {
	kind   image.Store
	socket string
}

func (s dockerStore) open() imagestore.Target { return imagestore.Docker(s.kind, openDocker(s.socket)) }

func openDocker(socket string) *docker.Engine {
	engine, err := docker.Open(socket)
	if err != nil {
		panic(err) // impossible: Open only parses the socket path
	}
	return engine
}

func (h *Host) criSocket() string {
	if h.Config.CRISocket != "" {
		return h.Config.CRISocket
	}
	return "/run/containerd/containerd.sock"
}

// bundleProblem returns a problem if the bundle cannot be read, is not
// trusted, is damaged, has another version, or does not exist.
func (h *Host) bundleProblem(ctx context.Context, role string) error {
	if h.Config.Bundle == "" {
		return h.imagesProblem(ctx, role)
	}
	problem := func(err error, remedy string) error {
		return &step.Problem{Name: "bundle", Text: err.Error(), Remedy: remedy}
	}
	b, err := h.source().Open()
	if errors.Is(err, bundle.ErrUntrusted) {
		return problem(err, "get a bundle that is signed with this key, or set --verify-key to the public key of its signer")
	}
	if errors.Is(err, fs.ErrNotExist) && h.saved.Role != "" && h.saved.Config.Bundle == h.Config.Bundle {
		return h.imagesProblem(ctx, role) // an installed host may not need the bundle any more
	}
	if errors.Is(err, bundle.ErrKey) {
		return problem(err, "set --verify-key to the file of the signer's public key")
	}
	if err != nil {
		return problem(err, "create it with `kube-bootstrap offline build`")
	}
	defer b.Close()
	if b.Versions.Kubernetes != h.versions.Kubernetes {
		return problem(fmt.Errorf("%s contains Kubernetes %s, not %s", h.Config.Bundle, b.Versions.Kubernetes, h.versions.Kubernetes),
			"give --kubernetes-version "+b.Versions.Kubernetes+" or another bundle")
	}
	if h.installed() || h.withoutIgnored(h.archProblem(ctx)) != nil {
		return nil
	}
	if err := b.Check(ctx, h.Config.Arch); err != nil {
		return problem(err, "use an undamaged copy; `kube-bootstrap offline verify` checks one")
	}
	return nil
}

// imagesProblem returns a problem if this host lacks images and has no bundle
// to load them from. Other checks cover registries and images that were
// loaded into Docker by hand.
func (h *Host) imagesProblem(ctx context.Context, role string) error {
	if h.byHand || h.fromRegistry() {
		return nil
	}
	from := h.source()
	from.Images = h.imagesOf(role)
	stores := []step.Step{from.Load(h.mainStore()), from.Load(h.podStore()), from.Load(dockerStore{image.Bootstrap, bootstrapdocker.Socket}.open())}
	for _, f := range (&step.Runner{}).Look(ctx, step.Plan{stores}) {
		if errors.Is(f.Err, fs.ErrNotExist) {
			return &step.Problem{Name: "bundle", Text: fmt.Sprintf("this host does not have all images of Kubernetes %s, and no bundle to load them from", h.versions.Kubernetes),
				Remedy: "give a bundle with --bundle (`kube-bootstrap offline build` creates it), or a registry with --registry"}
		}
	}
	return nil // the load steps report other errors
}
