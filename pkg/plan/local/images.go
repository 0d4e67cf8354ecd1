package local

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
)

// Source returns the image source of this host.
func (h *Host) Source() offline.Source {
	s := offline.Source{
		Path: h.Config.Bundle, Base: h.Config.BundleBase, VerifyKey: h.Config.VerifyKey, Versions: h.Versions,
		Images: h.Images, Arch: h.Config.Arch, Files: h.Files, KeepImages: h.Config.KeepImages, Broadcast: h.Loads,
	}
	switch {
	case h.ByHand:
		s.Docker = MainDocker()
	case h.FromRegistry():
		s.Registry = h.Registry
	case s.Path == "":
		s.Path = offline.HostPath
	}
	return s
}

// placed adds flannel's image to containerd if flannel runs in pods.
func placed(h *Host, all []image.Image) []image.Image {
	for i := range all {
		if all[i].Name == "flannel" && !h.OwnNetwork() {
			all[i].Stores = append(slices.Clone(all[i].Stores), image.Containerd)
		}
	}
	return all
}

// Image returns the reference of an image of the catalogue on this host.
func (h *Host) Image(name string) string {
	for _, img := range h.Images {
		if img.Name == name {
			return img.Ref
		}
	}
	return image.Ref(h.Versions, name)
}

// Program returns the image that contains a Kubernetes component on this
// host.
func (h *Host) Program(name string) string {
	if ref := image.ProgramRef(h.Versions, name); ref != image.Ref(h.Versions, "hyperkube") {
		return ref
	}
	return h.Image("hyperkube")
}

// TakeLoaded makes the main Docker the source of images, which the user has
// loaded there by hand, unless there is a bundle or a registry.
func (h *Host) TakeLoaded() { h.ByHand = h.Config.Bundle == "" && h.Registry == nil }
