package image

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

// errMalformed is the error of For for a malformed component version.
var errMalformed = errors.New("not a version like 1.2.3")

// Versions holds the version of every component in the component's own
// notation: Kubernetes with a leading v, all others without.
type Versions struct {
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Flannel    string `json:"flannel"`
	CoreDNS    string `json:"coredns"`
	Pause      string `json:"pause"`
	CNI        string `json:"cni"`

	// Of addons.
	MetricsServer string `json:"metricsServer,omitempty"`
	LocalPath     string `json:"localPath,omitempty"`
	MetalLB       string `json:"metallb,omitempty"`

	// Programs of Kubernetes that were built from a checkout, and the version that
	// each program reports: "kubelet": "v1.36.3+5d7e3f0a91b2".
	Programs map[string]string `json:"programs,omitempty"`
}

// For returns the versions that go with a Kubernetes version: "v1.36.3", "1.36" (its
// newest patch), "" or "stable" (the default). The set fields of override win.
func For(kubernetes string, override Versions) (Versions, error) {
	if override.Kubernetes != "" {
		kubernetes = override.Kubernetes
	}
	release, m, err := catalog.Kubernetes(kubernetes)
	if err != nil {
		return Versions{}, fmt.Errorf("kubernetes version %q %w", kubernetes, err)
	}
	v := Versions{Kubernetes: release, Etcd: m.Etcd, Flannel: m.Flannel, CoreDNS: m.CoreDNS, Pause: m.Pause, CNI: m.CNI,
		MetricsServer: m.MetricsServer, LocalPath: m.LocalPath, MetalLB: m.MetalLB, Programs: override.Programs}
	for _, o := range []struct {
		name  string
		into  *string
		value string
	}{
		{"etcd", &v.Etcd, withoutRevision(override.Etcd)},
		{"flannel", &v.Flannel, override.Flannel},
		{"CoreDNS", &v.CoreDNS, override.CoreDNS},
		{"pause", &v.Pause, override.Pause},
		{"CNI plugins", &v.CNI, override.CNI},
		{"metrics-server", &v.MetricsServer, override.MetricsServer},
		{"local-path-provisioner", &v.LocalPath, override.LocalPath},
		{"metallb", &v.MetalLB, override.MetalLB},
	} {
		if o.value == "" {
			continue
		}
		if *o.into, err = parseComponent(o.name, o.value); err != nil {
			return Versions{}, err
		}
	}
	return v, nil
}

// withoutRevision removes the revision that Kubernetes appends to its own images
// of etcd: a user may copy 3.6.16-0 from a manifest of kubeadm.
func withoutRevision(etcd string) string {
	release, _, _ := strings.Cut(etcd, "-")
	return release
}

var componentVersion = regexp.MustCompile(`^v?\d{1,4}(\.\d{1,4}){1,2}(-[0-9A-Za-z.]+)?$`)

func parseComponent(name, text string) (string, error) {
	if !componentVersion.MatchString(text) {
		return "", fmt.Errorf("%s version %q: %w", name, text, errMalformed)
	}
	return strings.TrimPrefix(text, "v"), nil
}

// Staging returns the version of the staging modules: v1.36.3 has k8s.io/api v0.36.3.
func Staging(kubernetes string) string { return "v0" + strings.TrimPrefix(kubernetes, "v1") }

func (v Versions) minor() string { return strings.Split(v.Kubernetes, ".")[1] }
