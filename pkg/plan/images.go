package plan

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (h *Host) bundle() offline.Source {
	path := h.Config.Bundle
	if path == "" {
		path = offline.HostPath
	}
	return offline.Source{Path: path, Images: h.images, Arch: h.Config.Arch, Files: h.Files, KeepImages: h.Config.KeepImages}
}

// loadBootstrap loads one image, so that what runs it need not wait for others.
func (h *Host) loadBootstrap(name string) step.Step {
	from := h.bundle()
	from.Part = name
	from.Images = slices.DeleteFunc(slices.Clone(from.Images), func(i image.Image) bool { return i.Name != name })
	return from.Load(dockerStore{image.Bootstrap, bootstrapdocker.Socket}.open())
}

func (h *Host) loadMain() step.Step {
	return h.bundle().Load(dockerStore{image.Main, mainSocket}.open())
}

func (h *Host) loadContainerd() step.Step {
	return h.bundle().Load(offline.ContainerdStore(h.criSocket(), ""))
}

type dockerStore struct {
	kind   image.Store
	socket string
}

func (s dockerStore) open() offline.Target {
	engine, err := host.OpenDocker(s.socket)
	if err != nil {
		panic(err) // the socket is a constant of ours, and nothing is dialled yet
	}
	return offline.Docker(s.kind, engine)
}

func (h *Host) criSocket() string {
	if h.Config.CRISocket != "" {
		return h.Config.CRISocket
	}
	return "/run/containerd/containerd.sock"
}

// bundleProblem says that the bundle can not be read, or is of another version.
func (h *Host) bundleProblem(context.Context) error {
	if h.Config.Bundle == "" {
		return nil
	}
	b, err := offline.Open(h.Config.Bundle)
	if err != nil {
		return &step.Problem{Name: "bundle", Text: err.Error(), Remedy: "make it with `kube-bootstrap offline build`"}
	}
	defer b.Close()
	if b.Versions.Kubernetes != h.versions.Kubernetes {
		return &step.Problem{Name: "bundle", Text: h.Config.Bundle + " holds Kubernetes " + b.Versions.Kubernetes + ", not " + h.versions.Kubernetes,
			Remedy: "give --kubernetes-version " + b.Versions.Kubernetes + " or another bundle"}
	}
	return nil
}
