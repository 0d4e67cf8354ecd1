package image

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// OfficialArchs are the architectures of the official Kubernetes images.
var OfficialArchs = []string{"amd64", "arm64", "ppc64le", "s390x"}

// debianBase contains the commands that the kubelet needs and kube-proxy's
// image lacks, such as mount.
const debianBase = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6"

// Registries are the registries of the official images.
var Registries = []string{"registry.k8s.io", "ghcr.io", "docker.io", "quay.io"}

// Upstreams returns the registries in the names of images, independent of the
// registry that serves them: the registries of the catalogue, and docker.io for
// names without a registry.
func Upstreams() []string {
	return []string{"registry.k8s.io", "ghcr.io", OurRegistry, "docker.io", "quay.io"}
}

// unpublished lists the images that upstream does not publish for all of
// OfficialArchs, with the architectures that lack them.
var unpublished = map[string][]string{"local-path-provisioner": {"ppc64le", "s390x"}}

// Sites are the base URLs of official files that are not in images.
type Sites struct {
	Kubernetes string // has release/v1.36.3/bin/linux/amd64/kubelet
	CNI        string // has v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz
}

// OfficialSites are the upstream sites.
var OfficialSites = Sites{
	Kubernetes: "https://dl.k8s.io", CNI: "https://github.com/containernetworking/plugins/releases/download",
}

// OfficialSource is an official image or file that an image is assembled from.
type OfficialSource struct {
	Name string `json:"name"` // "kube-apiserver"
	Ref  string `json:"image,omitempty"`
	URL  string `json:"file,omitempty"`
	Arch string `json:"arch"`
}

// Where returns the reference or the URL.
func (o OfficialSource) Where() string { return o.Ref + o.URL }

// Plain returns the hosts of the sites with plain HTTP.
func (s Sites) Plain() (hosts []string) {
	for _, site := range []string{s.Kubernetes, s.CNI} {
		if u, err := url.Parse(site); err == nil && u.Scheme == "http" {
			hosts = append(hosts, u.Host)
		}
	}
	return hosts
}

// Origins lists the origins of a bundle with published images for an architecture.
func Origins(v Versions, images []Image, sites Sites, arch string) []OfficialSource {
	all := []OfficialSource{{Name: "debian-base", Ref: debianBase}}
	for _, img := range images {
		if !strings.HasPrefix(img.Ref, OurRegistry+"/") {
			all = append(all, OfficialSource{Name: img.Name, Ref: img.Ref})
		}
	}
	for _, name := range imagePrograms {
		all = append(all, OfficialSource{Name: name, Ref: "registry.k8s.io/" + name + ":" + v.Kubernetes})
	}
	for _, name := range filePrograms {
		all = append(all, OfficialSource{
			Name: name, URL: fmt.Sprintf("%s/release/%s/bin/linux/%s/%s", sites.Kubernetes, v.Kubernetes, arch, name),
		})
	}
	all = append(all, OfficialSource{
		Name: "cni", URL: fmt.Sprintf("%s/v%s/cni-plugins-linux-%s-v%s.tgz", sites.CNI, v.CNI, arch, v.CNI),
	})
	for i := range all {
		all[i].Arch = arch
	}
	return all
}

// Published lists the images that can be assembled from official ones.
func Published(v Versions, arch string) []Image {
	return slices.DeleteFunc(Catalogue(v, ""), func(i Image) bool { return slices.Contains(unpublished[i.Name], arch) })
}

// The components that upstream publishes as images, and as files.
var (
	imagePrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}
	filePrograms  = []string{"kubelet", "kubectl"}
)

// Programs lists the Kubernetes components, which are in hyperkube.
func Programs() []string { return slices.Concat(imagePrograms, filePrograms) }
