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

// source is where the images of this host come from.
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

// loadBootstrap loads one image, so that what runs it need not wait for others.
func (h *Host) loadBootstrap(name string) step.Step {
	from := h.source()
	from.Part = name
	from.Images = slices.DeleteFunc(slices.Clone(from.Images), func(i image.Image) bool { return i.Name != name })
	return from.Load(dockerStore{image.Bootstrap, bootstrapdocker.Socket}.open())
}

func (h *Host) loadMain() step.Step { return h.source().Load(h.mainStore()) }

func (h *Host) loadContainerd() step.Step { return h.source().Load(h.podStore()) }

// dropReplaced removes images that others have taken the place of, once nothing
// runs from them.
func (h *Host) dropReplaced() []step.Step {
	return []step.Step{h.source().Drop(h.mainStore()), h.source().Drop(h.podStore())}
}

func (h *Host) mainStore() imagestore.Target { return dockerStore{image.Main, mainSocket}.open() }

func (h *Host) podStore() imagestore.Target {
	return imagestore.Containerd(h.criSocket(), "", host.StateDir)
}

// podImages are the images of the catalogue that pods run from.
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
		panic(err) // the socket is a constant of ours, and nothing is dialled yet
	}
	return engine
}

func (h *Host) criSocket() string {
	if h.Config.CRISocket != "" {
		return h.Config.CRISocket
	}
	return "/run/containerd/containerd.sock"
}

// bundleProblem returns the problem that the bundle cannot be read or trusted,
// is damaged, is of another version, or is missing.
func (h *Host) bundleProblem(ctx context.Context, role string) error {
	if h.Config.Bundle == "" {
		return h.imagesProblem(ctx, role)
	}
	problem := func(err error, remedy string) error {
		return &step.Problem{Name: "bundle", Text: err.Error(), Remedy: remedy}
	}
	b, err := h.source().Open()
	if errors.Is(err, bundle.ErrUntrusted) {
		return problem(err, "get it from who has the key, or give --verify-key another one")
	}
	if errors.Is(err, fs.ErrNotExist) && h.saved.Role != "" && h.saved.Config.Bundle == h.Config.Bundle {
		return h.imagesProblem(ctx, role) // this host was set up with it and may not need it any more
	}
	if err != nil {
		return problem(err, "make it with `kube-bootstrap offline build`")
	}
	defer b.Close()
	if b.Versions.Kubernetes != h.versions.Kubernetes {
		return problem(fmt.Errorf("%s holds Kubernetes %s, not %s", h.Config.Bundle, b.Versions.Kubernetes, h.versions.Kubernetes),
			"give --kubernetes-version "+b.Versions.Kubernetes+" or another bundle")
	}
	if h.installed() || h.withoutIgnored(h.archProblem(ctx)) != nil {
		return nil
	}
	if err := b.Check(ctx, h.Config.Arch); err != nil {
		return problem(err, "give a whole one; `kube-bootstrap offline verify` says what is in it")
	}
	return nil
}

// imagesProblem returns the problem that this host lacks images and has no
// bundle to load them from. Other checks cover registries and a Docker into
// which images were loaded by hand.
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
				Remedy: "give one with --bundle (`kube-bootstrap offline build` makes it), or a registry with --registry"}
		}
	}
	return nil // the steps themselves report other errors
}
