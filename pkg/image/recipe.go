package image

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed recipes
var recipes embed.FS

// Recipe says how one part is compiled. The programs of Kubernetes, etcd and CoreDNS are
// upstream's: Main only calls them, and no package or patch changes how they behave.
type Recipe struct {
	Name     string
	Version  string
	Main     string            // file below recipes; "" when Packages exist as they are
	Require  map[string]string // modules and versions
	Replace  map[string]string // module: "module version" or a directory
	Packages []string          // what to build; the last element names the program
	Tests    []string          `json:",omitempty"` // packages whose tests are the program, NAME.test
	Beside   string            `json:",omitempty"` // file in recipes/ that is compiled into each of Tests
	Stub     *stub             `json:",omitempty"`
	LDFlags  []string
	// CgoOn lists architectures where a feature needs C code; it is then
	// linked statically.
	CgoOn []string
}

// Recipe returns the recipe of a part of an image.
func (v Versions) Recipe(name string) Recipe {
	r := Recipe{Name: name, Packages: []string{"."}}
	switch name {
	case "hyperkube":
		r.Version, r.Main, r.Require = v.Kubernetes, "hyperkube.go.tmpl", v.kubernetesModule()
		r.LDFlags = v.stamp(v.Kubernetes)
	case "programs":
		r.Version, r.Packages, r.Require = v.Kubernetes, nil, v.kubernetesModule() // packages as they are asked for
	case "suite":
		r.Version, r.Tests, r.Beside = v.Kubernetes, []string{"k8s.io/kubernetes/test/e2e"}, "suiteevents_test.go.tmpl"
		r.Packages, r.Require = []string{"github.com/onsi/ginkgo/v2/ginkgo"}, v.kubernetesModule()
		r.LDFlags = v.stamp(v.Kubernetes)
	case "etcd":
		r.Version, r.Main = "v"+v.Etcd, "etcd.go.tmpl"
		r.Require = map[string]string{"go.etcd.io/etcd/server/v3": r.Version}
	case "flannel":
		r.Version, r.CgoOn = "v"+v.Flannel, []string{"amd64"} // the udp backend
		r.Packages = []string{"github.com/flannel-io/flannel"}
		r.Require = map[string]string{r.Packages[0]: r.Version}
		r.LDFlags = []string{"-X github.com/flannel-io/flannel/pkg/version.Version=" + r.Version}
		r.Replace = tencentSDK
	case "coredns":
		r.Version, r.Main = "v"+v.CoreDNS, "coredns.go.tmpl"
		r.Require = map[string]string{"github.com/coredns/coredns": r.Version}
	case "cni":
		const plugins = "github.com/containernetworking/plugins"
		r.Version, r.Require = "v"+v.CNI, map[string]string{plugins: "v" + v.CNI}
		r.Packages = []string{plugins + "/plugins/main/bridge", plugins + "/plugins/main/loopback",
			plugins + "/plugins/ipam/host-local", plugins + "/plugins/meta/portmap"}
		r.LDFlags = []string{"-X " + plugins + "/pkg/utils/buildversion.BuildVersion=" + r.Version}
	case "pause":
		r.Version, r.Main = "v"+v.Pause, "pause.go.tmpl"
	case "metrics-server":
		r.Version, r.Require = "v"+v.MetricsServer, v.addonModules()
		r.Packages = []string{metricsServer + "/cmd/metrics-server"}
		r.LDFlags = []string{"-X " + metricsServer + "/pkg/version.gitVersion=" + r.Version}
	case "local-path-provisioner":
		r.Version, r.Require, r.Packages = "v"+v.LocalPath, v.addonModules(), []string{localPath}
		r.LDFlags = []string{"-X main.VERSION=" + r.Version}
	case "metallb-controller", "metallb-speaker":
		// Not in addonModules: metrics-server does not compile with MetalLB's version
		// of the libraries of Kubernetes.
		r.Version, r.Packages = "v"+v.MetalLB, []string{metallb + "/" + strings.TrimPrefix(name, "metallb-")}
		r.Require = map[string]string{metallb: r.Version}
		r.Stub, r.Replace = &frrAPI, map[string]string{frrAPI.Module: frrAPI.dir()}
	}
	return r
}

const tencent = "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/"

// tencentSDK replaces the versions that flannel asks for, which were withdrawn.
var tencentSDK = map[string]string{
	tencent + "common": tencent + "common v1.3.103", tencent + "vpc": tencent + "vpc v1.3.75",
}

// The Go modules of addons.
const (
	metricsServer = "sigs.k8s.io/metrics-server"
	localPath     = "github.com/rancher/local-path-provisioner"
	metallb       = "go.universe.tf/metallb"
)

// addonModules are the modules of metrics-server and local-path. Their recipes
// share them, so that the toolchain chooses the same versions of the common
// dependencies and compiles these only once.
func (v Versions) addonModules() map[string]string {
	return map[string]string{metricsServer: "v" + v.MetricsServer, localPath: "v" + v.LocalPath}
}

// stub is a module that replaces another one, whose package a program imports
// and does not need. The module has this one package, of one file.
type stub struct {
	Module  string // the replaced module
	Package string // directory of the package in the module
	Source  string // file below recipes
}

// frrAPI replaces the API of FRR-K8s: without it, MetalLB announces no address by
// BGP with FRR-K8s.
var frrAPI = stub{Module: "github.com/metallb/frr-k8s", Package: "api/v1beta1", Source: "frrk8s.go.tmpl"}

// stubDir is the prefix of the directories of stubs in the module of a recipe.
const stubDir = "./stub-"

func (s stub) dir() string { return stubDir + path.Base(s.Module) }

func (v Versions) kubernetesModule() map[string]string {
	return map[string]string{"k8s.io/kubernetes": v.Kubernetes}
}

// stamp makes programs of Kubernetes say which version they are.
func (v Versions) stamp(version string) (flags []string) {
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, "-X "+pkg+".gitVersion="+version, "-X "+pkg+".gitMajor=1",
			"-X "+pkg+".gitMinor="+v.minor(), "-X "+pkg+".gitTreeState=archive")
	}
	return flags
}

// sumsFile returns the name of the go.sum of a recipe, below recipes; "" for a
// recipe without modules or of a test image, which no cluster runs. It contains all
// versions of the catalogue.
//
// The toolchain insists on these checksums, also where the environment turns the
// checksum database off. It verifies modules that are not listed, such as those of
// other versions, with that database.
func (r Recipe) sumsFile() string {
	switch {
	case r.Require["k8s.io/kubernetes"] != "":
		return "kubernetes.sum"
	case r.Require[metricsServer] != "":
		return "addons.sum"
	case r.Require[metallb] != "":
		return "metallb.sum"
	case slices.Contains([]string{"cni", "coredns", "etcd", "flannel"}, r.Name):
		return r.Name + ".sum"
	}
	return ""
}

// recipeFile returns a file below recipes; "" for no name. The names are constants.
func recipeFile(name string) string {
	if name == "" {
		return ""
	}
	data, err := recipes.ReadFile("recipes/" + name)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// goMod returns the go.mod of a recipe.
func (r Recipe) goMod(goVersion string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "module build.kube-bootstrap.dev/%s\n\ngo %s\n", r.Name, goVersion)
	for _, m := range sortedKeys(r.Require) {
		fmt.Fprintf(&b, "require %s %s\n", m, r.Require[m])
	}
	for _, m := range sortedKeys(r.Replace) {
		fmt.Fprintf(&b, "replace %s => %s\n", m, r.Replace[m])
	}
	return b.String()
}

// Program is the file name that a package is built to.
func (r Recipe) Program(pkg string) string {
	if pkg == "." {
		return r.Name
	}
	return path.Base(pkg)
}
