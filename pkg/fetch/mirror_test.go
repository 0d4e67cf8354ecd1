package fetch

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestMirrors(t *testing.T) {
	mirrors, err := mirrorsOf([]string{
		"registry.k8s.io=mirror.example.com:5000/k8s/", "ghcr.io=http://10.0.0.1", "docker.io=mirror.example.com/hub",
	},
		[]string{"registry.k8s.io", "ghcr.io", "docker.io"})
	must.NoError(t, err)
	for ref, want := range map[string]string{
		"registry.k8s.io/etcd:3.6.8-0":         "mirror.example.com:5000/k8s/etcd:3.6.8-0",
		"registry.k8s.io/coredns/coredns:v1":   "mirror.example.com:5000/k8s/coredns/coredns:v1",
		"ghcr.io/flannel-io/flannel:v0.28.9":   "10.0.0.1/flannel-io/flannel:v0.28.9",
		"docker.io/library/debian:trixie-slim": "mirror.example.com/hub/library/debian:trixie-slim",
		"quay.io/metallb/speaker:v1":           "quay.io/metallb/speaker:v1",
	} {
		at, err := mirrors.find(ref)
		if err != nil || at.Name() != want {
			t.Errorf("%s is looked for at %v (%v), not at %s", ref, at, err, want)
		}
	}
	if got := mirrors.plain(); len(got) != 1 || got[0] != "10.0.0.1" {
		t.Errorf("by plain HTTP: %v", got)
	}
}

func TestBadMirrors(t *testing.T) {
	for text, says := range map[string]string{
		"mirror.example.com":                    "must be REGISTRY=HOST",
		"registry.k8s.io=":                      "must be REGISTRY=HOST",
		"quay.io=mirror.example.com":            `no image comes from "quay.io"`,
		"registry.k8s.io=ftp://mirror":          "ftp://, which is not supported",
		"registry.k8s.io=https://":              "must name the mirror by HOST[",
		"registry.k8s.io=mirror/UPPER":          "in lower case",
		"registry.k8s.io=u:p@mirror.example":    "contains a user",
		"u:p@mirror.example":                    "contains a user",
		"registry.k8s.io=mirror.example?x=true": "must name the mirror by HOST[",
	} {
		if _, err := mirrorsOf([]string{text}, []string{"registry.k8s.io"}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	if _, err := mirrorsOf([]string{"ghcr.io=a.example", "ghcr.io=b.example"}, []string{"ghcr.io"}); err == nil {
		t.Error("two mirrors of one registry")
	}
}

// mirrorsOf returns the mirrors of texts.
func mirrorsOf(texts []string, known []string) (Mirrors, error) {
	all, err := mirror.ParseList(strings.Join(texts, ","))
	if err != nil {
		return nil, err
	}
	return MirrorsOf(all, known)
}
