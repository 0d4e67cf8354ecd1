package image

import "slices"

// The Go modules of addons.
const (
	metricsServer = "sigs.k8s.io/metrics-server"
	localPath     = "github.com/rancher/local-path-provisioner"
)

// addonImages lists the images of addons. Every bundle contains them, and every
// host has them, because a pod of an addon may run on any host.
func addonImages(v Versions) []Image {
	return []Image{
		{Name: "metrics-server", Addon: "metrics-server", Ref: "registry.k8s.io/metrics-server/metrics-server:v" + v.MetricsServer, Stores: []Store{Containerd}},
		{Name: "local-path-provisioner", Addon: "local-path", Ref: "docker.io/rancher/local-path-provisioner:v" + v.LocalPath, Stores: []Store{Containerd}},
	}
}

// OfEveryCluster returns the images that also a cluster without addons uses.
func OfEveryCluster(all []Image) []Image {
	return slices.DeleteFunc(slices.Clone(all), func(i Image) bool { return i.Addon != "" })
}

// addonModules are the modules of all addons. Their recipes share them, so that
// the toolchain chooses the same versions of the common dependencies and
// compiles these only once.
func (v Versions) addonModules() map[string]string {
	return map[string]string{metricsServer: "v" + v.MetricsServer, localPath: "v" + v.LocalPath}
}
