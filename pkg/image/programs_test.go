package image

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func withPrograms(t *testing.T, programs map[string]string) Versions {
	t.Helper()
	v, err := For("v1.36.3", Versions{Programs: programs})
	must.NoError(t, err)
	return v
}

func TestProgramsHaveImagesNamedByWhatIsInThem(t *testing.T) {
	v := withPrograms(t, map[string]string{
		"kube-apiserver": "v1.36.3+aaa", "kubelet": "v1.36.3+bbb", "kubectl": "v1.36.3+ccc",
	})
	for program, want := range map[string]string{
		"kube-apiserver": "kube-bootstrap.dev/kube-apiserver:v1.36.3-aaa",
		"kube-scheduler": "kube-bootstrap.dev/hyperkube:v1.36.3",
		"kubelet":        "kube-bootstrap.dev/kubelet:v1.36.3-bbb-ccc",
		"kubectl":        "kube-bootstrap.dev/kubelet:v1.36.3-bbb-ccc",
	} {
		if got := ProgramRef(v, program); got != want {
			t.Errorf("%s runs from %s, not %s", program, got, want)
		}
	}
	var stores []string
	for _, img := range Catalogue(v, "")[len(Catalogue(withPrograms(t, nil), "")):] {
		stores = append(stores, img.Name+" in "+string(img.Stores[0]))
	}
	if want := []string{"kube-apiserver in containerd", "kubelet in main Docker"}; !slices.Equal(stores, want) {
		t.Errorf("got %q, want %q", stores, want)
	}
	if v.ProgramVersion("kubelet") != "v1.36.3+bbb" || v.ProgramVersion("kube-proxy") != "v1.36.3" {
		t.Error("versions: ", v.ProgramVersion("kubelet"), v.ProgramVersion("kube-proxy"))
	}
}

func TestAWorkerHasNothingOfAControlPlane(t *testing.T) {
	v := withPrograms(t, map[string]string{
		"kube-apiserver": "v1.36.3+a", "kube-scheduler": "v1.36.3+b", "kubelet": "v1.36.3+c", "kube-proxy": "v1.36.3+d",
	})
	if got := slices.Sorted(maps.Keys(v.OnWorker().Programs)); !slices.Equal(got, []string{"kube-proxy", "kubelet"}) {
		t.Errorf("got %q", got)
	}
	if got := withPrograms(t, map[string]string{"kube-apiserver": "v1.36.3+a"}).OnWorker().Programs; got != nil {
		t.Errorf("got %q", got)
	}
}

func TestContentKeyIsOfWhatIsCompiled(t *testing.T) {
	all := func(action, content string) map[string]listed {
		return map[string]listed{
			"cmd": {BuildID: "x/1", Deps: []string{"dep", "unsafe"}},
			"dep": {BuildID: action + "/" + content}, "unsafe": {},
			"other": {BuildID: action + "/" + content + action},
		}
	}
	key := func(all map[string]listed) string {
		t.Helper()
		got, err := contentKey(all, "cmd")
		must.NoError(t, err)
		return got
	}
	if key(all("a", "1")) != key(all("b", "1")) {
		t.Error("a package that was compiled to the same changes the key")
	}
	if key(all("a", "1")) == key(all("a", "2")) {
		t.Error("a package that was compiled to something else does not change the key")
	}
	lacking := all("a", "1")
	delete(lacking, "dep")
	if _, err := contentKey(lacking, "cmd"); err == nil {
		t.Error("a package of which nothing is known is no error")
	}
}

func TestCheckCheckout(t *testing.T) {
	v := withPrograms(t, nil)
	kubernetes := func(module, minor string) string {
		dir := t.TempDir()
		must.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, versionFile)), 0o755))
		for name, text := range map[string]string{
			"go.mod": "module " + module + "\n\ngo 1.26.0\n", versionFile: minor,
		} {
			must.Write(t, filepath.Join(dir, name), text)
		}
		return dir
	}
	const says = "package version\n\nconst (\n\tDefaultKubeBinaryVersion = \"1."
	for name, c := range map[string]struct{ dir, want string }{
		"no directory":   {"/nowhere", "is not a checkout of Kubernetes: it has no go.mod"},
		"another module": {kubernetes("example.com/x", says+"36\"\n)\n"), "its go.mod is of another module"},
		"no version":     {kubernetes("k8s.io/kubernetes", "package version\n"), "does not say which version it is"},
		"too old": {kubernetes("k8s.io/kubernetes", says+"33\"\n)\n"),
			"is Kubernetes 1.33; check out " + catalog.Supported()},
		"too new": {kubernetes("k8s.io/kubernetes", says+"99\"\n)\n"),
			"is Kubernetes 1.99; check out " + catalog.Supported()},
		"another minor": {kubernetes("k8s.io/kubernetes", says+"35\"\n)\n"),
			"is Kubernetes 1.35, and the cluster is v1.36.3; check out release-1.36"},
		"right": {kubernetes("k8s.io/kubernetes", says+"36\"\n)\n"), ""},
	} {
		err := CheckCheckout(c.dir, v)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(step.Problems(err)) != 1):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestOldBuildsOfAProgramGo(t *testing.T) {
	b := &Builder{Cache: t.TempDir()}
	parts := filepath.Join(b.Cache, "parts")
	age := func(name string, hours int) {
		t.Helper()
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		must.NoError(t, errors.Join(os.MkdirAll(filepath.Join(parts, name), 0o755),
			os.Chtimes(filepath.Join(parts, name), at, at)))
	}
	for i := range spareBuilds + 2 {
		age(fmt.Sprintf("kubelet-v1.36.3-amd64-%d", i), i)
		age(fmt.Sprintf("layer-kubelet-v1.36.3-amd64-%d", i), 0)
	}
	age("kubelet-v1.36.3-arm64-0", 9)
	age("kubectl-v1.36.3-amd64-0", 9)
	must.NoError(t, b.DropOldPrograms("amd64", []string{"kubelet"}))
	left, err := filepath.Glob(filepath.Join(parts, "*"))
	if err != nil || len(left) != 2*spareBuilds+2 {
		t.Errorf("left %q, %v", left, err)
	}
	for i := range spareBuilds {
		if _, err := os.Stat(filepath.Join(parts, fmt.Sprintf("layer-kubelet-v1.36.3-amd64-%d", i))); err != nil {
			t.Error(err)
		}
	}
}
