package image

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestModuleSum(t *testing.T) {
	const sum = "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	for want, m := range map[string]debug.Module{
		"":                                 {Path: OurRegistry + "/etcd"},
		"go.etcd.io/raft/v3@v3.7.0 " + sum: {Path: "go.etcd.io/raft/v3", Version: "v3.7.0", Sum: sum},
		"example.com/fork@v1.0.1 " + sum: {Path: "example.com/x", Version: "v1.0.0",
			Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: sum}},
		"k8s.io/api (checkout)": {Path: "k8s.io/api", Version: "v0.0.0",
			Replace: &debug.Module{Path: "/src/kubernetes/staging/src/k8s.io/api"}},
		frrAPI.Module + " (stub)": {Path: frrAPI.Module, Version: "v0.0.27",
			Replace: &debug.Module{Path: frrAPI.dir()}},
		"github.com/coredns/coredns@v1 " + sum: {Path: "github.com/coredns/coredns", Version: "v1", Sum: sum},
	} {
		if got := moduleSum(&m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestCheckout builds from a checkout, whose go.mod replaces the staging modules by
// directories of the checkout.
func TestCheckout(t *testing.T) {
	dir := t.TempDir()
	goMod := "module k8s.io/kubernetes\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/client-go => " +
		"./staging/src/k8s.io/client-go\n)\n"
	must.Write(t, filepath.Join(dir, "go.mod"), goMod)
	v, _ := For("", Versions{})
	b := &Builder{Cache: t.TempDir(), K8sDir: dir}
	r := v.Recipe("hyperkube")
	must.NoError(t, b.prepare(t.Context(), &r))
	for module, want := range map[string]string{
		"k8s.io/kubernetes": dir, "k8s.io/api": dir + "/staging/src/k8s.io/api",
	} {
		if r.Replace[module] != want {
			t.Errorf("%s comes from %q, not from %q", module, r.Replace[module], want)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	must.NoError(t, os.Symlink(dir, link))
	for _, b.K8sDir = range []string{dir, link} {
		for name, noticed := range map[string]bool{
			"edited.go": true, "go.mod": true, "asm_amd64.s": true, "embedded.yaml": true, "_output/bin/kubelet": false,
			".git/index": false,
		} {
			before := b.checkoutState()
			must.Write(t, filepath.Join(dir, name), before) // other content in each round
			if (b.checkoutState() != before) != noticed {
				t.Errorf("%s: an edit of %s is noticed: %t", b.K8sDir, name, !noticed)
			}
		}
	}
	b.K8sDir = filepath.Join(dir, "none")
	if err := b.prepare(t.Context(), &r); err == nil {
		t.Error("a checkout that is not there is accepted")
	}
}
