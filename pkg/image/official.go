package image

import "fmt"

// officialVersions are the releases that go with a Kubernetes minor version:
// those of kubeadm, with the flannel and the CNI plugins of the day. Their
// etcd has the revision of the image in its version.
var officialVersions = map[int]Versions{
	34: {Etcd: "3.6.5-0", Flannel: "0.28.9", CoreDNS: "1.12.1", Pause: "3.10.1", CNI: "1.9.1"},
	35: {Etcd: "3.6.6-0", Flannel: "0.28.9", CoreDNS: "1.13.1", Pause: "3.10.1", CNI: "1.9.1"},
	36: {Etcd: "3.6.8-0", Flannel: "0.28.9", CoreDNS: "1.14.2", Pause: "3.10.2", CNI: "1.9.1"},
}

// Official returns the versions that are pulled for a Kubernetes version, as
// For returns those that are built.
func Official(kubernetes string, override Versions) (Versions, error) {
	return complete(kubernetes, func(minor int) Versions { return officialVersions[minor] }, override)
}

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
