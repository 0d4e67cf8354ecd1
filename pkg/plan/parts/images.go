package parts

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Images are the images of a host: where they come from, and the stores that they are loaded into.
type Images struct {
	Source offline.Source

	stores   local.Stores
	registry step.Step
	fetch    step.Step
}

func newImages(h *local.Host, role string) Images {
	return Images{
		Source: h.Source(), stores: h.Stores(), fetch: fetchBundle(h, role),
		registry: registryFiles(h.Files, h.Registry, h.RegistryLost, h.Config.RegistryMirrors),
	}
}

// LoadBootstrap is the step that loads one image into the bootstrap Docker.
func (i Images) LoadBootstrap(name string) step.Step {
	return i.Source.Only(name).Load(i.stores.Bootstrap)
}

// Load returns the steps that load the images of the main Docker and of the pods. If
// they run concurrently, the second waits for the end of the first, as both stores
// share the files of Kubernetes.
func (i Images) Load() (main, pods step.Step) {
	return i.Source.Load(i.stores.Main), i.Source.Load(i.stores.Pods)
}

// DropReplaced removes the images of earlier versions that nothing uses any more.
func (i Images) DropReplaced() []step.Step {
	return []step.Step{i.Source.Drop(i.stores.Main), i.Source.Drop(i.stores.Pods)}
}

// Fetch is the step with which a host that joins fetches the bundle of a control plane.
func (i Images) Fetch() step.Step { return i.fetch }

// RegistryFiles is the step that configures containerd, Docker and the kubelet
// for the private registry, or containerd for mirrors. The private registry
// serves the images of all registries, so that mirrors are of no use with it.
func (i Images) RegistryFiles() step.Step { return i.registry }

// registryFiles takes the error that the configuration of the registry is lost, if it is.
func registryFiles(files host.Files, from *registry.Registry, lost error, mirrors []mirror.Mirror) step.Step {
	return registry.ConfigureHost(files, func() ([]host.File, error) {
		if lost != nil {
			return nil, lost
		}
		if from == nil {
			return containerd.MirrorFiles(files, mirrors)
		}
		hosts, err := containerd.RegistryFiles(files, from, image.Upstreams())
		if err != nil {
			return nil, err
		}
		credentials, err := kubelet.RegistryFiles(from, image.Upstreams())
		return slices.Concat(hosts, maindocker.RegistryFiles(from), credentials), err
	})
}
