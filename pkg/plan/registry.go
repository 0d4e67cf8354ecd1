package plan

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// findRegistry takes the private registry that the settings name, else the one
// that this host was set up with.
func (h *Host) findRegistry() error {
	known, err := registry.Load(h.Files)
	if host.IsDamaged(err) {
		h.registryLost, err = err, nil
	}
	if err != nil || h.Config.Registry.Address == "" {
		h.registry = known
		return err
	}
	h.registryLost = nil
	// The credential helpers of Docker that this may ask have no limit of their own.
	given, err := registry.New(context.Background(), h.Config.Registry)
	if err != nil {
		return &step.Problem{Name: "registry-settings", Text: err.Error(), Remedy: "correct that"}
	}
	given.Complete(known)
	h.registry = given
	return nil
}

// fromRegistry reports whether the images come from the registry. With a
// bundle too, only later pods take theirs from there.
func (h *Host) fromRegistry() bool { return h.registry != nil && h.Config.Bundle == "" }

// handedRegistry takes over the master's registry, unless this host has one.
func (h *Host) handedRegistry(way []byte) error {
	if h.registry != nil {
		return nil
	}
	var err error
	h.registry, err = registry.Parse(way)
	return err
}

// registryWay shows the way to the registry to everything on this host that
// pulls images.
func (h *Host) registryWay() step.Step {
	return registry.Lay(h.Files, func() ([]host.File, error) {
		if h.registryLost != nil {
			return nil, &step.Problem{Name: "registry-settings", Text: "the way to the private registry is lost: " + h.registryLost.Error(),
				Remedy: "name the registry again with --registry, its user and its certificates"}
		}
		if h.registry == nil {
			return nil, nil
		}
		hosts, err := h.runtime().RegistryFiles(h.registry, image.Upstreams())
		if err != nil {
			return nil, err
		}
		credentials, err := kubelet.RegistryFiles(h.registry, image.Upstreams())
		return slices.Concat(hosts, maindocker.RegistryFiles(h.registry), credentials), err
	})
}
