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

// Recipe says how one part is compiled.
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
		r.Version, r.Main = v.Kubernetes, "hyperkube.go.tmpl"
		r.Require = map[string]string{"k8s.io/kubernetes": v.Kubernetes}
		r.LDFlags = v.stamp(v.Kubernetes)
	case "programs":
		r.Version, r.Packages = v.Kubernetes, nil // as they are asked for
		r.Require = map[string]string{"k8s.io/kubernetes": v.Kubernetes}
	case "suite":
		r.Version, r.Tests, r.Beside = v.Kubernetes, []string{"k8s.io/kubernetes/test/e2e"}, "suiteevents_test.go.tmpl"
		r.Packages = []string{"github.com/onsi/ginkgo/v2/ginkgo"}
		r.Require = map[string]string{"k8s.io/kubernetes": v.Kubernetes}
		r.LDFlags = v.stamp(v.Kubernetes)
	case "etcd":
		r.Version, r.Main = "v"+v.etcdRelease(), "etcd.go.tmpl"
		r.Require = map[string]string{"go.etcd.io/etcd/server/v3": r.Version}
	case "flannel":
		r.Version, r.CgoOn = "v"+v.Flannel, []string{"amd64"} // the udp backend
		r.Packages = []string{"github.com/flannel-io/flannel"}
		r.Require = map[string]string{r.Packages[0]: r.Version}
		r.LDFlags = []string{"-X github.com/flannel-io/flannel/pkg/version.Version=" + r.Version}
		const tencent = "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common"
		r.Replace = map[string]string{tencent: tencent + " v1.3.103"} // the version it asks for was withdrawn
	case "coredns":
		r.Version, r.Packages = "v"+v.CoreDNS, []string{"github.com/coredns/coredns"}
		r.Require = map[string]string{r.Packages[0]: r.Version}
	case "cni":
		const plugins = "github.com/containernetworking/plugins"
		r.Version, r.Require = "v"+v.CNI, map[string]string{plugins: "v" + v.CNI}
		r.Packages = []string{plugins + "/plugins/main/bridge", plugins + "/plugins/main/loopback",
			plugins + "/plugins/ipam/host-local", plugins + "/plugins/meta/portmap"}
		r.LDFlags = []string{"-X " + plugins + "/pkg/utils/buildversion.BuildVersion=" + r.Version}
	case "pause":
		r.Version, r.Main = "v"+v.Pause, "pause.go.tmpl"
	case "metrics-server":
		r.Version, r.Require, r.Packages = "v"+v.MetricsServer, v.addonModules(), []string{metricsServer + "/cmd/metrics-server"}
		r.LDFlags = []string{"-X " + metricsServer + "/pkg/version.gitVersion=" + r.Version}
	case "local-path-provisioner":
		r.Version, r.Require, r.Packages = "v"+v.LocalPath, v.addonModules(), []string{localPath}
		r.LDFlags = []string{"-X main.VERSION=" + r.Version}
	case "metallb-controller", "metallb-speaker":
		r = v.metallbRecipe(name)
	}
	return r
}

// stamp makes programs of Kubernetes say which version they are.
func (v Versions) stamp(version string) (flags []string) {
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, "-X "+pkg+".gitVersion="+version, "-X "+pkg+".gitMajor=1",
			"-X "+pkg+".gitMinor="+v.minor(), "-X "+pkg+".gitTreeState=archive")
	}
	return flags
}

func (r Recipe) source() (string, error) {
	if r.Main == "" {
		return "package main\n\nfunc main() {}\n", nil
	}
	return recipeFile(r.Main)
}

// beside returns the source that is compiled into the tests; "" if there is
// none.
func (r Recipe) beside() (string, error) {
	if r.Beside == "" {
		return "", nil
	}
	return recipeFile(r.Beside)
}

// sumsFile returns the name of the go.sum of a recipe, below recipes; "" for a
// recipe without modules or of a test image, which no cluster runs. It contains all
// versions of the catalogue.
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

// sums returns the checksums that the toolchain insists on, also where the
// environment turns the checksum database off. The toolchain verifies modules
// that are not listed, such as those of other versions, with that database.
func (r Recipe) sums() ([]byte, error) {
	name := r.sumsFile()
	if name == "" {
		return nil, nil
	}
	data, err := recipeFile(name)
	return []byte(data), err
}

func recipeFile(name string) (string, error) {
	data, err := recipes.ReadFile(path.Join("recipes", name))
	return string(data), err
}

func (r Recipe) goMod(goVersion string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "module kube-bootstrap.dev/%s\n\ngo %s\n", r.Name, goVersion)
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
