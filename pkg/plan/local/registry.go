package local

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// findRegistry sets the private registry: the one in the settings, else the
// saved one.
func (h *Host) findRegistry() error {
	known, err := registry.Load(h.Files)
	if host.IsDamaged(err) {
		h.RegistryLost, err = registryLost(err), nil
	}
	if err != nil || h.Config.Registry.Address == "" {
		h.Registry = known
		return err
	}
	h.RegistryLost = nil
	// Docker's credential helpers, which this may call, have no timeout.
	given, err := registry.New(context.Background(), h.Config.Registry)
	if err != nil {
		return &step.Problem{Name: "registry-settings", Text: err.Error(), Remedy: "correct the setting"}
	}
	given.Complete(known)
	h.Registry = given
	return nil
}

// registryLost is the problem that the saved registry cannot be read
// [registry-settings].
func registryLost(err error) *step.Problem {
	return &step.Problem{
		Name: "registry-settings", Text: "the configuration of the private registry is lost: " + err.Error(),
		Remedy: "set the registry again with --registry, its user and its certificates",
	}
}

// FromRegistry reports whether the images come from the registry. If a bundle
// is set too, the images come from the bundle, and only later pods use the
// registry.
func (h *Host) FromRegistry() bool { return h.Registry != nil && h.Config.Bundle == "" }

// handedRegistry adopts the registry of the join data, unless this host has
// one.
func (h *Host) handedRegistry(configuration []byte) error {
	if h.Registry != nil {
		return nil
	}
	var err error
	h.Registry, err = registry.Parse(configuration)
	return err
}
