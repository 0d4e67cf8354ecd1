package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestKubernetes(t *testing.T) {
	for in, want := range map[string]string{
		"": Newest().Patch, "stable": Newest().Patch, "1.36.3": "v1.36.3", "v1.34.0": "v1.34.0", "1.35": "v1.35.4",
		"v1.36": "v1.36.3",
	} {
		release, m, err := Kubernetes(in)
		if err != nil || release != want || !strings.HasPrefix(release, "v"+m.String()+".") {
			t.Errorf("%q: %q of %s, %v, want %q", in, release, m, err, want)
		}
	}
	for in, want := range map[string]string{
		"v1.33.9": "must be a release", "1.38": "must be a release", "v2.0.0": "must be", "1": "must be",
		"latest": "must be", "1.36.3; rm -rf /": "must be",
		"v1.36.3-alpha.1": "is a pre-release", "v1.37.0-rc.1": "is a pre-release", "v1.36.3+abc": "must be",
	} {
		release, _, err := Kubernetes(in)
		if err == nil || !strings.HasPrefix(err.Error(), want) ||
			!strings.Contains(err.Error(), "Kubernetes "+Supported()+", such as "+Newest().Patch) {
			t.Errorf("%q: %q, %v, want %q", in, release, err, want)
		}
	}
}

// TestMinors checks that every minor version from the oldest to the newest has
// a complete row.
func TestMinors(t *testing.T) {
	for i, m := range Minors() {
		if m.Number != minors[0].Number+i {
			t.Errorf("1.%d follows %s", m.Number, minors[i-1])
		}
		if !strings.HasPrefix(m.Patch, fmt.Sprintf("v%s.", m)) {
			t.Errorf("%s: its newest patch is %s", m, m.Patch)
		}
		for name, version := range map[string]string{"etcd": m.Etcd, "CoreDNS": m.CoreDNS, "pause": m.Pause,
			"CNI": m.CNI, "flannel": m.Flannel,
			"containerd": m.Containerd, "metrics-server": m.MetricsServer, "local-path": m.LocalPath,
			"metallb": m.MetalLB} {
			if version == "" {
				t.Errorf("%s: which %s?", m, name)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	for _, m := range minors {
		for component, flag := range map[string]string{"kube-apiserver": "etcd-servers",
			"kube-controller-manager": "leader-elect",
			"kube-scheduler":          "leader-elect", "kubelet": "node-ip", "etcd": "data-dir"} {
			release := m.Patch
			if component == "etcd" {
				release = m.Etcd
			}
			known, err := KnownFlags(component, release)
			if err != nil || !slices.Contains(known, flag) || slices.Contains(known, "no-such-flag") {
				t.Errorf("%s %s: %d flags, %v", component, release, len(known), err)
			}
		}
	}
	m := Newest()
	if gates, err := KnownGates(m.Patch); err != nil || !slices.Contains(gates, "AllAlpha") {
		t.Errorf("%d gates, %v", len(gates), err)
	}
	if _, err := KnownFlags("kubelet", "v1.2.3"); err == nil ||
		!strings.Contains(err.Error(), "kubelet 1.2 accepts are not known") {
		t.Errorf("a version without a list: %v", err)
	}
}

// TestThePageOfVersions checks that docs/versions.md contains each row
// unchanged.
func TestThePageOfVersions(t *testing.T) {
	page := must.Read(t, "../../docs/versions.md")
	if rows := strings.Count(string(page), "\n| 1."); rows != len(minors) {
		t.Errorf("the page has %d rows, and the table %d", rows, len(minors))
	}
	for _, m := range minors {
		name := m.String()
		if m.Number == Newest().Number {
			name += " (default)"
		}
		added := "-"
		if len(m.KubeletAdded) > 0 {
			added = "`" + strings.Join(m.KubeletAdded, "`, `") + "`"
		}
		etcd, _, _ := strings.Cut(m.Etcd, "-")
		row := fmt.Sprintf("| %s |",
			strings.Join([]string{name, m.Patch, etcd, m.CoreDNS, m.Pause, m.CNI, m.Flannel, m.Containerd,
				m.MetricsServer, m.LocalPath, m.MetalLB, added}, " | "))
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/versions.md lacks the row\n%s", row)
		}
	}
}
