package image

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestFor(t *testing.T) {
	for _, c := range []struct {
		in, want string // "": refused
	}{
		{"", catalog.Newest().Patch},
		{"stable", catalog.Newest().Patch},
		{"1.36.3", "v1.36.3"},
		{"v1.35", "v1.35.4"},
		{"v1.33.9", ""},
		{"latest", ""},
	} {
		v, err := For(c.in, Versions{})
		if v.Kubernetes != c.want || (err != nil) != (c.want == "") {
			t.Errorf("For(%q) = %q, %v; want %q", c.in, v.Kubernetes, err, c.want)
		}
	}
}

func TestForOverride(t *testing.T) {
	v, err := For("v1.36.3", Versions{Etcd: "v3.7.3", Kubernetes: "v1.35.4"})
	if err != nil || v.Etcd != "3.7.3" || v.Recipe("etcd").Version != "v3.7.3" || v.Kubernetes != "v1.35.4" ||
		Staging(v.Kubernetes) != "v0.35.4" || v.minor() != "35" {
		t.Errorf("%+v %v", v, err)
	}
	if v, err := For("", Versions{Etcd: "3.7.3-0"}); err != nil || v.Etcd != "3.7.3" {
		t.Errorf("the version in a manifest of kubeadm: %s, %v", v.Etcd, err)
	}
	if _, err := For("", Versions{Flannel: "../x"}); !errors.Is(err, errMalformed) ||
		!strings.Contains(err.Error(), "flannel") {
		t.Errorf("got %v", err)
	}
}

func TestCatalogue(t *testing.T) {
	v, _ := For("1.36", Versions{})
	var refs []string
	for _, i := range Catalogue(v, "") {
		refs = append(refs, i.Ref)
	}
	want := []string{"quay.io/coreos/etcd:v3.6.16", "ghcr.io/flannel-io/flannel:v0.28.10",
		"kube-bootstrap.dev/hyperkube:v1.36.3",
		"registry.k8s.io/coredns/coredns:v1.14.2", "registry.k8s.io/pause:3.10.2",
		"registry.k8s.io/metrics-server/metrics-server:v0.9.0", "docker.io/rancher/local-path-provisioner:v0.0.30",
		"quay.io/metallb/controller:v0.16.2", "quay.io/metallb/speaker:v0.16.2"}
	if !slices.Equal(refs, want) {
		t.Errorf("got %q", refs)
	}
	if got := Catalogue(v, "reg:5000/k8s/")[3].Ref; got != "reg:5000/k8s/coredns/coredns:v1.14.2" {
		t.Errorf("below a prefix: %s", got)
	}
	if Ref(v, "pause") != "registry.k8s.io/pause:3.10.2" {
		t.Error(Ref(v, "pause"))
	}
}

func TestArch(t *testing.T) {
	for in, want := range map[string]string{
		"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "ppc64le": "ppc64le", "s390x": "s390x",
		"amd64": "amd64",
	} {
		if got, err := Arch(in); err != nil || got != want {
			t.Errorf("Arch(%q) = %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"i686", "armv6l", "riscv64", ""} {
		if _, err := Arch(in); err == nil {
			t.Errorf("Arch(%q) is accepted", in)
		}
	}
}

func TestBuildIsReproducibleAndCached(t *testing.T) {
	v, _ := For("", Versions{})
	pause := Catalogue(v, "")[4]
	build := func(cache, arch string, ctx context.Context) string {
		built, err := (&Builder{Cache: cache}).Build(ctx, v, pause, arch)
		must.NoError(t, err)
		d, err := built.OCI.Digest()
		must.NoError(t, err)
		return d.String()
	}
	cache := t.TempDir()
	first := build(cache, "amd64", t.Context())
	if other := build(t.TempDir(), "amd64", t.Context()); other != first {
		t.Errorf("built twice: %s and %s", first, other)
	}
	if build(cache, "arm", t.Context()) == first {
		t.Error("two architectures give the same image")
	}
	again := step.WithReporter(t.Context(), func(what string, _, _ int64) { t.Errorf("cached, and still: %s", what) })
	if build(cache, "amd64", again) != first {
		t.Error("the cache holds something else")
	}
}

func TestRecipes(t *testing.T) {
	v, _ := For("", Versions{})
	for _, name := range []string{
		"hyperkube", "etcd", "flannel", "coredns", "cni", "pause", "metrics-server", "local-path-provisioner",
		"metallb-controller", "metallb-speaker",
	} {
		r := v.Recipe(name)
		c, err := (&Builder{}).compilation(t.Context(), r, "amd64")
		if err != nil || !strings.Contains(c.source, "func main()") || r.Version == "" {
			t.Errorf("%s: version %q, %v", name, r.Version, err)
		}
	}
	if mod := v.Recipe("flannel").goMod("1.26.8"); !strings.Contains(mod,
		"require github.com/flannel-io/flannel v0.28.10\nreplace ") {
		t.Error(mod)
	}
}
