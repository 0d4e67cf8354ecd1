package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

var (
	kubernetesModule = regexp.MustCompile(`(?m)^module k8s\.io/kubernetes$`)
	binaryVersion    = regexp.MustCompile(`DefaultKubeBinaryVersion\s*=\s*"1\.(\d+)"`)
)

// versionFile contains the minor version of a checkout.
const versionFile = "staging/src/k8s.io/component-base/version/base.go"

// CheckCheckout returns a problem if a directory is not of that Kubernetes version; an empty v allows any.
func CheckCheckout(dir string, v Versions) error {
	minor, err := checkoutMinor(dir)
	release, known := catalog.Find(minor)
	problem := &step.Problem{Name: "k8s-dir", Remedy: "give the directory of a checkout of Kubernetes"}
	switch {
	case err != nil:
		problem.Text = fmt.Sprintf("k8sDir: %s: %v", dir, err)
	case !known:
		problem.Text = fmt.Sprintf("k8sDir: %s is Kubernetes 1.%d", dir, minor)
		problem.Remedy = "check out " + catalog.Supported()
	case v.Kubernetes != "" && strconv.Itoa(minor) != v.minor():
		problem.Text = fmt.Sprintf("k8sDir: %s is Kubernetes 1.%d, and the cluster is %s", dir, minor, v.Kubernetes)
		problem.Remedy = fmt.Sprintf("check out release-1.%s, or make a cluster with --kubernetes-version %s",
			v.minor(), release.Patch)
	default:
		return nil
	}
	return problem
}

func checkoutMinor(dir string) (int, error) {
	module, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, errors.New("is not a checkout of Kubernetes: it has no go.mod")
	}
	if err != nil {
		return 0, err
	}
	if !kubernetesModule.Match(module) {
		return 0, errors.New("is not a checkout of Kubernetes: its go.mod is of another module")
	}
	data, err := os.ReadFile(filepath.Join(dir, versionFile))
	if err != nil {
		return 0, err
	}
	found := binaryVersion.FindSubmatch(data)
	if found == nil {
		return 0, fmt.Errorf("%s does not say which version it is", versionFile)
	}
	return strconv.Atoi(string(found[1]))
}
