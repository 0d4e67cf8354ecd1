package image

import "fmt"

// OfficialArchs are the architectures that upstream publishes Kubernetes for.
var OfficialArchs = []string{"amd64", "arm64", "ppc64le", "s390x"}

// debianBase has what a kubelet starts that the image of kube-proxy lacks:
// mount and its kin.
const debianBase = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6"

// Registries are where official images come from.
var Registries = []string{"registry.k8s.io", "ghcr.io"}

// Sites are where files come from that are in no image.
type Sites struct {
	Kubernetes string // has release/v1.36.3/bin/linux/amd64/kubelet
	CNI        string // has v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz
}

// OfficialSites are the upstream ones.
var OfficialSites = Sites{Kubernetes: "https://dl.k8s.io", CNI: "https://github.com/containernetworking/plugins/releases/download"}

// Origin is something of an official place that images of ours are made of:
// an image or a file, with its checksum beside it.
type Origin struct {
	Name string `json:"name"` // "kube-apiserver"
	Ref  string `json:"image,omitempty"`
	URL  string `json:"file,omitempty"`
	Arch string `json:"arch"`
}

// Where is the reference or the address.
func (o Origin) Where() string { return o.Ref + o.URL }

// Origins lists what a bundle is pulled from, for an architecture.
func Origins(v Versions, sites Sites, arch string) []Origin {
	all := []Origin{{Name: "debian-base", Ref: debianBase}}
	for _, name := range []string{"etcd", "flannel", "coredns", "pause"} {
		all = append(all, Origin{Name: name, Ref: Ref(v, name)})
	}
	for _, name := range imagePrograms {
		all = append(all, Origin{Name: name, Ref: "registry.k8s.io/" + name + ":" + v.Kubernetes})
	}
	for _, name := range filePrograms {
		all = append(all, Origin{Name: name, URL: fmt.Sprintf("%s/release/%s/bin/linux/%s/%s", sites.Kubernetes, v.Kubernetes, arch, name)})
	}
	all = append(all, Origin{Name: "cni", URL: fmt.Sprintf("%s/v%s/cni-plugins-linux-%s-v%s.tgz", sites.CNI, v.CNI, arch, v.CNI)})
	for i := range all {
		all[i].Arch = arch
	}
	return all
}

// The programs of hyperkube: those that upstream publishes as images, and those
// that are files.
var (
	imagePrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}
	filePrograms  = []string{"kubelet", "kubectl"}
)
