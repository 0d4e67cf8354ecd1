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
