package local

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

func TestVersionsThatAHostWasMadeWith(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	made := image.Versions{Kubernetes: "v1.36.3", Etcd: "3.6.15", Flannel: "0.28.9", CoreDNS: "1.14.2", Pause: "3.10.2", CNI: "1.9.1"}
	keepVersions(t, files, made)
	other, err := image.For("v1.35.4", image.Versions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ kubernetes, etcd, wantEtcd, wantDNS string }{
		"the same again":             {"v1.36.3", "", "3.6.15", "1.14.2"},
		"the user's own wins":        {"v1.36.3", "3.7.3", "3.7.3", "1.14.2"},
		"not for another Kubernetes": {"v1.35.4", "", other.Etcd, other.CoreDNS},
	} {
		h := &Host{Files: files}
		h.Config.KubernetesVersion, h.Config.EtcdVersion = c.kubernetes, c.etcd
		if err := h.UseCatalogue(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Versions.Etcd != c.wantEtcd || h.Versions.CoreDNS != c.wantDNS {
			t.Errorf("%s: etcd %s, CoreDNS %s, want %s, %s", name, h.Versions.Etcd, h.Versions.CoreDNS, c.wantEtcd, c.wantDNS)
		}
	}
}
