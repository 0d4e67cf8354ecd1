package parts

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// LoadBootstrap is the step that loads one image into the bootstrap Docker, once it runs,
// so that its container need not wait for the other images.
func LoadBootstrap(h *local.Host, name string) step.Step {
	return h.Source().Only(name).Load(h.Stores().Bootstrap).After(Bootstrap(h).Start())
}

// Load returns the steps that load the images of the main Docker and of the pods. If
// they run concurrently, the second waits for the end of the first, as both stores
// share the files of Kubernetes.
func Load(h *local.Host) (main, pods step.Step) {
	stores := h.Stores()
	return h.Source().Load(stores.Main), h.Source().Load(stores.Pods)
}

// DropReplaced removes the images of earlier versions that nothing uses any more.
func DropReplaced(h *local.Host) []step.Step {
	stores := h.Stores()
	return []step.Step{h.Source().Drop(stores.Main), h.Source().Drop(stores.Pods)}
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
			return containerd.MirrorFiles(h.Files, h.Config.RegistryMirrors)
		}
		hosts, err := containerd.RegistryFiles(h.Files, h.Registry, image.Upstreams())
		if err != nil {
			return nil, err
		}
		credentials, err := kubelet.RegistryFiles(h.Registry, image.Upstreams())
		return slices.Concat(hosts, maindocker.RegistryFiles(h.Registry), credentials), err
	})
}
