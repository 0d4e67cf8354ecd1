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

// findRegistry sets the private registry: the one in the settings, else the
// saved one.
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
	// Docker's credential helpers, which this may call, have no timeout.
	given, err := registry.New(context.Background(), h.Config.Registry)
	if err != nil {
		return &step.Problem{Name: "registry-settings", Text: err.Error(), Remedy: "correct the setting"}
	}
	given.Complete(known)
	h.registry = given
	return nil
}

// fromRegistry reports whether the images come from the registry. If a bundle
// is set too, the images come from the bundle, and only later pods use the
// registry.
func (h *Host) fromRegistry() bool { return h.registry != nil && h.Config.Bundle == "" }

// handedRegistry adopts the registry of the join data, unless this host has
// one.
func (h *Host) handedRegistry(configuration []byte) error {
	if h.registry != nil {
		return nil
	}
	var err error
	h.registry, err = registry.Parse(configuration)
	return err
}

// registryFiles is the step that configures containerd, Docker and the kubelet
// for the registry.
func (h *Host) registryFiles() step.Step {
	return registry.ConfigureHost(h.Files, func() ([]host.File, error) {
		if h.registryLost != nil {
			return nil, &step.Problem{Name: "registry-settings", Text: "the configuration of the private registry is lost: " + h.registryLost.Error(),
				Remedy: "set the registry again with --registry, its user and its certificates"}
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
