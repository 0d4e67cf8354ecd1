package parts

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// LoadBootstrap is the step that loads one image into the bootstrap Docker, once it runs,
// so that its container need not wait for the other images.
func LoadBootstrap(h *local.Host, name string) step.Step {
	return only(h.Source(), name).Load(bootstrapStore()).After(Bootstrap(h).Start())
}

func only(from offline.Source, name string) offline.Source {
	from.Part = name
	from.Images = slices.DeleteFunc(slices.Clone(from.Images), func(i image.Image) bool { return i.Name != name })
	return from
}

// Load returns the steps that load the images of the main Docker and of the pods. If
// they run concurrently, the second waits for the end of the first, as both stores
// share the files of Kubernetes.
func Load(h *local.Host) (main, pods step.Step) {
	store := mainStore()
	return h.Source().Load(store), h.Source().Load(podStore(h, store))
}

// LoadAll returns the steps that load images into all stores of a host.
func LoadAll(h *local.Host, from offline.Source) []step.Step {
	main := mainStore()
	return []step.Step{from.Load(main), from.Load(podStore(h, main)), from.Load(bootstrapStore())}
}

// Loaded reports whether the stores of a host have all images of a bundle.
func Loaded(ctx context.Context, h *local.Host, from offline.Source, b *bundle.Bundle) bool {
	main := mainStore()
	return from.Has(ctx, b, main) && from.Has(ctx, b, podStore(h, main)) && !slices.ContainsFunc(from.Images, func(i image.Image) bool {
		return i.In(image.Bootstrap) && !only(from, i.Name).Has(ctx, b, bootstrapStore())
	})
}

// DropReplaced removes the images of earlier versions that nothing uses any more.
func DropReplaced(h *local.Host) []step.Step {
	main := mainStore()
	return []step.Step{h.Source().Drop(main), h.Source().Drop(podStore(h, main))}
}

func mainStore() imagestore.DockerStore {
	return imagestore.Docker(image.Main, local.MainDocker())
}

func bootstrapStore() imagestore.DockerStore {
	return imagestore.Docker(image.Bootstrap, local.BootstrapDocker())
}

// podStore returns the image store of the pods. It shares files with the main Docker,
// whose kubelet is of the same image.
func podStore(h *local.Host, main imagestore.DockerStore) imagestore.Target {
	both := imagesIn(h, image.Main, image.Containerd)
	return imagestore.Containerd(h.CRISocket(), "", host.StateDir, main.LayersOf(both...))
}

func imagesIn(h *local.Host, stores ...image.Store) (refs []string) {
	for _, i := range h.Images {
		if !slices.ContainsFunc(stores, func(s image.Store) bool { return !i.In(s) }) {
			refs = append(refs, i.Ref)
		}
	}
	return refs
}

// RegistryFiles is the step that configures containerd, Docker and the kubelet
// for the private registry, or containerd for mirrors. The private registry
// serves the images of all registries, so that mirrors are of no use with it.
func RegistryFiles(h *local.Host) step.Step {
	return registry.ConfigureHost(h.Files, func() ([]host.File, error) {
		if h.RegistryLost != nil {
			return nil, h.RegistryLost
		}
		if h.Registry == nil {
			return containerd.MirrorFiles(h.Files, h.Config.Mirrors())
		}
		hosts, err := containerd.RegistryFiles(h.Files, h.Registry, image.Upstreams())
		if err != nil {
			return nil, err
		}
		credentials, err := kubelet.RegistryFiles(h.Registry, image.Upstreams())
		return slices.Concat(hosts, maindocker.RegistryFiles(h.Registry), credentials), err
	})
}
