package plan

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// versionsFile has the versions that this host was made with: its bundle may be
// gone when it is looked at again.
const versionsFile = host.StateDir + "/versions.json"

// useCatalogue decides which version of each component this host runs. The
// user's settings have priority, then the bundle, which may have been built
// with other versions, then the versions that the host was set up with.
func (h *Host) useCatalogue() error {
	known := h.knownVersions()
	known.Kubernetes = "" // the config has it, and preflight compares the bundle's
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
	h.versions, h.images = versions, h.placed(image.Catalogue(versions, ""))
	return nil
}

// Versions returns the versions of the components that this host runs.
func (h *Host) Versions() image.Versions { return h.versions }

// withImages returns a copy of the host that runs only these images.
func (h *Host) withImages(images []image.Image) *Host {
	other := *h
	other.images = images
	return &other
}

// knownVersions are those of the bundle, or those the host was made with;
// none if both are of another Kubernetes. A bundle that cannot be read is told
// of by preflight.
func (h *Host) knownVersions() image.Versions {
	wanted, err := image.For(h.Config.KubernetesVersion, image.Versions{})
	if err != nil {
		return image.Versions{} // useCatalogue says so
	}
	if h.pushed.Kubernetes == wanted.Kubernetes {
		return h.pushed
	}
	if h.fromRegistry() {
		return h.rememberedVersions(wanted)
	}
	if bundle, err := h.source().Open(); err == nil {
		defer bundle.Close()
		if bundle.Versions.Kubernetes == wanted.Kubernetes {
			return bundle.Versions
		}
	}
	return h.rememberedVersions(wanted)
}

func (h *Host) rememberedVersions(wanted image.Versions) image.Versions {
	remembered, err := host.Record[image.Versions]{Path: versionsFile}.Read(h.Files)
	if err != nil || remembered.Kubernetes != wanted.Kubernetes {
		return image.Versions{}
	}
	return remembered
}

// versionsOf are those that matter to a host of a role.
func (h *Host) versionsOf(role string) image.Versions {
	if role == Worker {
		return h.versions.OnWorker()
	}
	return h.versions
}

// Programs are the versions of those programs of Kubernetes that differ from
// the release's, as far as they are a matter of this host.
func (h *Host) Programs() map[string]string { return h.versionsOf(h.saved.Role).Programs }

// Subnet returns the subnet of this host's containers and pods; "" if it has
// none yet.
func (h *Host) Subnet() string {
	lease, err := h.lease()
	if err != nil {
		return ""
	}
	return lease.Subnet.Masked().String()
}

// imagesOf are the images that a host of a role runs.
func (h *Host) imagesOf(role string) []image.Image {
	wanted := image.Catalogue(h.versionsOf(role), "")
	return slices.DeleteFunc(slices.Clone(h.images), func(i image.Image) bool {
		return !slices.ContainsFunc(wanted, func(w image.Image) bool { return w.Ref == i.Ref })
	})
}
