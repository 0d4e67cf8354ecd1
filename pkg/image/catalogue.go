// Package image lists every image of a cluster, and builds the images from
// source. It is the only package that contains image names.
package image

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// ManifestLimit is larger than any manifest, in bytes: registries accept no
// larger manifests (OCI distribution specification, "Pushing Manifests"). A
// blob of at least this size is a layer.
const ManifestLimit = 4 << 20

// Store is an image store of a host.
type Store string

// The stores of a host.
const (
	Bootstrap  Store = "bootstrap Docker"
	Main       Store = "main Docker"
	Containerd Store = "containerd"
)

// Image is one image of the catalogue.
type Image struct {
	Name   string  `json:"name"` // "etcd"
	Ref    string  `json:"ref"`  // "quay.io/coreos/etcd:v3.7.3"
	Stores []Store `json:"stores"`
	// Addon is the name of the addon that uses the image; empty if every cluster
	// uses it. A bundle may lack the image of an addon.
	Addon string `json:"addon,omitempty"`
}

// In reports whether the image belongs into a store.
func (i Image) In(s Store) bool { return slices.Contains(i.Stores, s) }

// etcdImage is the image that etcd's own release process publishes, for every
// release and for all of OfficialArchs. registry.k8s.io/etcd has only the
// releases that kubeadm uses, some of which do not enforce the rights of a user.
const etcdImage = "quay.io/coreos/etcd"

// Catalogue lists the images of a cluster. With a prefix, their references
// are in a private registry: "reg:5000/k8s/coredns/coredns:v1.15.0".
func Catalogue(v Versions, registryPrefix string) []Image {
	all := []Image{
		{Name: "etcd", Ref: etcdImage + ":v" + v.Etcd, Stores: []Store{Bootstrap}},
		{Name: "flannel", Ref: "ghcr.io/flannel-io/flannel:v" + v.Flannel, Stores: []Store{Bootstrap}},
		{Name: "hyperkube", Ref: OurRegistry + "/hyperkube:" + v.Kubernetes, Stores: []Store{Main, Containerd}},
		{Name: "coredns", Ref: "registry.k8s.io/coredns/coredns:v" + v.CoreDNS, Stores: []Store{Containerd}},
		{Name: "pause", Ref: "registry.k8s.io/pause:" + v.Pause, Stores: []Store{Containerd}},
		addonImage("metrics-server", "metrics-server", "registry.k8s.io/metrics-server/metrics-server",
			v.MetricsServer),
		addonImage("local-path-provisioner", "local-path", "docker.io/rancher/local-path-provisioner", v.LocalPath),
		addonImage("metallb-controller", "metallb", "quay.io/metallb/controller", v.MetalLB),
		addonImage("metallb-speaker", "metallb", "quay.io/metallb/speaker", v.MetalLB),
	}
	all = append(all, ownPrograms(v)...)
	if registryPrefix == "" {
		return all
	}
	for i := range all {
		_, path, _ := strings.Cut(all[i].Ref, "/")
		all[i].Ref = strings.TrimSuffix(registryPrefix, "/") + "/" + path
	}
	return all
}

// CatalogueOf is Catalogue without the images for which holds, which gets them without the prefix, returns false.
func CatalogueOf(v Versions, registryPrefix string, holds func(Image) bool) []Image {
	plain := Catalogue(v, "")
	var held []Image
	for i, one := range Catalogue(v, registryPrefix) {
		if holds(plain[i]) {
			held = append(held, one)
		}
	}
	return held
}

// References returns the references of images.
func References(images []Image) []string {
	var refs []string
	for _, i := range images {
		refs = append(refs, i.Ref)
	}
	return refs
}

// addonImage returns an image of an addon. Every bundle contains them, and every
// host has them, because a pod of an addon may run on any host.
func addonImage(name, addon, repo, version string) Image {
	return Image{Name: name, Addon: addon, Ref: repo + ":v" + version, Stores: []Store{Containerd}}
}

// OfEveryCluster returns the images that also a cluster without addons uses.
func OfEveryCluster(all []Image) []Image {
	return slices.DeleteFunc(slices.Clone(all), func(i Image) bool { return i.Addon != "" })
}

// OurRegistry is the registry name of images that are not published.
const OurRegistry = "kube-bootstrap.dev"

// Ref returns the canonical reference of an image. It panics on an unknown name.
func Ref(v Versions, name string) string {
	all := Catalogue(v, "")
	i := slices.IndexFunc(all, func(i Image) bool { return i.Name == name })
	if i < 0 {
		panic("no image " + name + " in the catalogue")
	}
	return all[i].Ref
}

var unameArch = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv8l": "arm", "armhf": "arm",
}

// Arch converts a name of `uname -m` to Go's name, which it accepts too.
func Arch(uname string) (string, error) {
	arch := cmp.Or(unameArch[uname], uname)
	if !slices.Contains(config.Arches, arch) {
		return "", fmt.Errorf("machine %q is none of %s", uname, strings.Join(config.Arches, ", "))
	}
	return arch, nil
}
