package local

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Stores are the image stores of a host.
type Stores struct {
	Bootstrap, Main imagestore.DockerStore
	// Pods shares files with the main Docker, whose kubelet is of the same image.
	Pods imagestore.Target
}

// Stores returns the image stores of this host.
func (h *Host) Stores() Stores {
	main := imagestore.Docker(image.Main, MainDocker())
	return Stores{
		Bootstrap: imagestore.Docker(image.Bootstrap, BootstrapDocker()), Main: main,
		Pods: imagestore.Containerd(
			string(h.CRISocket()), "", host.StateDir, main.LayersOf(h.ImagesIn(image.Main, image.Containerd)...)),
	}
}

// ImagesIn returns the references of the images that belong into each of the stores.
func (h *Host) ImagesIn(stores ...image.Store) (refs []string) {
	for _, i := range h.Images {
		if !slices.ContainsFunc(stores, func(s image.Store) bool { return !i.In(s) }) {
			refs = append(refs, i.Ref)
		}
	}
	return refs
}

// LoadAll returns the steps that load images into all stores.
func (s Stores) LoadAll(from offline.Source) []step.Step {
	return []step.Step{from.Load(s.Main), from.Load(s.Pods), from.Load(s.Bootstrap)}
}

// Loaded reports whether the stores have all images of a bundle.
func (s Stores) Loaded(ctx context.Context, from offline.Source, b *bundle.Bundle) bool {
	missing := func(i image.Image) bool {
		return i.In(image.Bootstrap) && !from.Only(i.Name).Has(ctx, b, s.Bootstrap)
	}
	return from.Has(ctx, b, s.Main) && from.Has(ctx, b, s.Pods) && !slices.ContainsFunc(from.Images, missing)
}
