package image

import (
	"slices"
	"strings"
)

// The Go modules of addons.
const (
	metricsServer = "sigs.k8s.io/metrics-server"
	localPath     = "github.com/rancher/local-path-provisioner"
	metallb       = "go.universe.tf/metallb"
)

// addonImages lists the images of addons. Every bundle contains them, and every
// host has them, because a pod of an addon may run on any host.
func addonImages(v Versions) []Image {
	return []Image{
		{Name: "metrics-server", Addon: "metrics-server", Ref: "registry.k8s.io/metrics-server/metrics-server:v" + v.MetricsServer, Stores: []Store{Containerd}},
		{Name: "local-path-provisioner", Addon: "local-path", Ref: "docker.io/rancher/local-path-provisioner:v" + v.LocalPath, Stores: []Store{Containerd}},
		{Name: "metallb-controller", Addon: "metallb", Ref: "quay.io/metallb/controller:v" + v.MetalLB, Stores: []Store{Containerd}},
		{Name: "metallb-speaker", Addon: "metallb", Ref: "quay.io/metallb/speaker:v" + v.MetalLB, Stores: []Store{Containerd}},
	}
}

// OfEveryCluster returns the images that also a cluster without addons uses.
func OfEveryCluster(all []Image) []Image {
	return slices.DeleteFunc(slices.Clone(all), func(i Image) bool { return i.Addon != "" })
}

// metallbRecipe returns the recipe of a program of MetalLB. It does not share the
// modules of other addons, because metrics-server does not compile with MetalLB's
// version of the libraries of Kubernetes.
func (v Versions) metallbRecipe(name string) Recipe {
	return Recipe{
		Name: name, Version: "v" + v.MetalLB, Packages: []string{metallb + "/" + strings.TrimPrefix(name, "metallb-")},
		Require: map[string]string{metallb: "v" + v.MetalLB}, Stub: &frrAPI, Replace: map[string]string{frrAPI.Module: frrAPI.dir()},
	}
}

// addonModules are the modules of metrics-server and local-path. Their recipes
// share them, so that the toolchain chooses the same versions of the common
// dependencies and compiles these only once.
func (v Versions) addonModules() map[string]string {
	return map[string]string{metricsServer: "v" + v.MetricsServer, localPath: "v" + v.LocalPath}
}
