package local

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// VersionsFile records the versions of the components on this host, because
// its bundle may be gone later.
const VersionsFile = host.StateDir + "/versions.json"

// UseCatalogue sets the version of each component. The user's settings have
// priority, then the bundle, which may have been built with other versions,
// then the recorded versions.
func (h *Host) UseCatalogue() error {
	known := h.KnownVersions()
	known.Kubernetes = "" // set by the configuration; preflight compares it with the bundle
	if h.Config.EtcdVersion != "" {
		known.Etcd = h.Config.EtcdVersion
	}
	if h.Config.FlannelVersion != "" {
		known.Flannel = h.Config.FlannelVersion
	}
	versions, err := image.For(h.Config.KubernetesVersion, known)
	if err != nil {
		return err
	}
	h.Versions, h.Images = versions, placed(h, image.Catalogue(versions, ""))
	return nil
}

// WithImages returns a copy of the host that has only these images.
func (h *Host) WithImages(images []image.Image) *Host {
	other := *h
	other.Images = images
	return &other
}

// KnownVersions returns the versions in the bundle, or the recorded ones, if
// they belong to the wanted Kubernetes version. Preflight reports a bundle
// that cannot be read.
func (h *Host) KnownVersions() image.Versions {
	wanted, err := image.For(h.Config.KubernetesVersion, image.Versions{})
	if err != nil {
		return image.Versions{} // useCatalogue returns the error
	}
	if h.pushed.Kubernetes == wanted.Kubernetes {
		return h.pushed
	}
	if h.FromRegistry() {
		return h.rememberedVersions(wanted)
	}
	if bundle, err := h.Source().Open(); err == nil {
		defer bundle.Close()
		if bundle.Versions.Kubernetes == wanted.Kubernetes {
			return bundle.Versions
		}
	}
	return h.rememberedVersions(wanted)
}

func (h *Host) rememberedVersions(wanted image.Versions) image.Versions {
	remembered, err := host.Record[image.Versions]{Path: VersionsFile}.Read(h.Files)
	if err != nil || remembered.Kubernetes != wanted.Kubernetes {
		return image.Versions{}
	}
	return remembered
}

// VersionsOf returns the versions of the components that a host of the role
// runs.
func (h *Host) VersionsOf(role string) image.Versions {
	if role == Worker {
		return h.Versions.OnWorker()
	}
	return h.Versions
}

// Programs returns the versions of the Kubernetes components of this host
// that differ from the release.
func (h *Host) Programs() map[string]string { return h.VersionsOf(h.Saved.Role).Programs }

// ImagesOf are the images that a host of a role runs.
func (h *Host) ImagesOf(role string) []image.Image {
	wanted := image.Catalogue(h.VersionsOf(role), "")
	return slices.DeleteFunc(slices.Clone(h.Images), func(i image.Image) bool {
		return !slices.ContainsFunc(wanted, func(w image.Image) bool { return w.Ref == i.Ref })
	})
}
