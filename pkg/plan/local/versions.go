package local

import (
	"cmp"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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
	known.Etcd, known.Flannel = cmp.Or(h.Config.EtcdVersion, known.Etcd), cmp.Or(h.Config.FlannelVersion, known.Flannel)
	versions, err := image.For(h.Config.KubernetesVersion, known)
	if err != nil {
		return err
	}
	h.Versions, h.Images = versions, image.Catalogue(versions, "")
	for i := range h.Images {
		if h.Images[i].Name == "flannel" && !h.ManagesNetwork() { // flannel runs in pods
			h.Images[i].Stores = append(h.Images[i].Stores, image.Containerd)
		}
	}
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
	if from := h.ImagesFrom(); from == FromBundle || from == FromHost {
		if bundle, err := h.Source().Open(); err == nil {
			defer bundle.Close()
			if bundle.Manifest.Versions.Kubernetes == wanted.Kubernetes {
				return bundle.Manifest.Versions
			}
		}
	}
	if h.recorded.To.Kubernetes == wanted.Kubernetes {
		return h.recorded.To
	}
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

// ImagesOf are the images that a host of a role runs. A worker runs no etcd.
func (h *Host) ImagesOf(role string) []image.Image {
	wanted := image.Catalogue(h.VersionsOf(role), "")
	return slices.DeleteFunc(slices.Clone(h.Images), func(i image.Image) bool {
		return role == Worker && i.Name == "etcd" || !slices.ContainsFunc(wanted, func(w image.Image) bool { return w.Ref == i.Ref })
	})
}

// Source returns the image source of this host.
func (h *Host) Source() offline.Source {
	s := offline.Source{
		Path: h.Config.Bundle, Base: h.Config.BundleBase, VerifyKey: h.Config.VerifyKey, Key: h.key,
		Versions: h.Versions, Images: h.Images, Arch: h.Config.Arch, Files: h.Files,
		KeepImages: h.Config.KeepImages, Broadcast: h.Loads,
		Expected: h.Supply.Plan != nil,
	}
	if len(h.key) == 0 && Foreign(h, "verifyKey", h.Config.VerifyKey) {
		s.NoKey = ForeignError("verifyKey", h.Config.VerifyKey)
	}
	switch h.ImagesFrom() {
	case FromDocker:
		s.Docker = MainDocker()
	case FromRegistry:
		s.Registry = h.Registry
	case FromHost:
		s.Path, s.Base = h.Files.Path(offline.HostPath), ""
		if h.Offer != nil {
			s.Offered = h.Offer.Head
		}
	}
	return s
}

// Image returns the reference of an image of the catalogue on this host.
func (h *Host) Image(name string) string {
	if i := slices.IndexFunc(h.Images, func(i image.Image) bool { return i.Name == name }); i >= 0 {
		return h.Images[i].Ref
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

// SkewProblem compares the wanted versions with those in force, and the etcd
// version with the newest version that has used the data directory
// [version-skew].
func SkewProblem(h *Host, role string) error {
	if !h.Saved.Installed() {
		return nil
	}
	running := h.Saved.Config.KubernetesVersion
	problems := []error{h.UpgradeLost}
	if !ends(h) {
		problems = append(problems, skewed(catalog.CheckChange(running, h.Config.KubernetesVersion),
			"keep "+running+", take a newer patch of it, or look at `kube-bootstrap upgrade plan`"))
	}
	started, err := etcd.DataOf(h.Files).Started()
	if err != nil {
		return err
	}
	if started != "" && role == ControlPlane {
		err := catalog.CheckEtcdChange(started, h.Versions.Etcd)
		problems = append(problems, skewed(err, "set ETCD_VERSION to "+started+" or newer"))
	}
	return errors.Join(problems...)
}

// joinSkewProblem compares the wanted version with the version of the API
// server that this host joins [version-skew].
func joinSkewProblem(h *Host, server string) error {
	if ends(h) {
		return nil // the control planes were asked before
	}
	saved := h.Saved.Config.KubernetesVersion
	if h.Saved.Installed() && saved != "" && catalog.CheckControlPlane(saved, server) != nil {
		server = saved // an upgrade has followed the join
	}
	wanted, remedy := h.Versions.Kubernetes, "set K8S_VERSION to "+server+", or leave it out"
	if h.Config.Join {
		return skewed(catalog.CheckControlPlane(wanted, server), remedy)
	}
	return skewed(catalog.CheckKubelet(wanted, server), remedy)
}

func skewed(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return &step.Problem{Name: "version-skew", Text: err.Error(), Remedy: remedy}
}
