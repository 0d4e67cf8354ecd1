package preflight

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestImagesLoadedByHandHaveNoSignature(t *testing.T) {
	h := &local.Host{ByHand: true}
	h.Config.VerifyKey = "/etc/our.pub"
	if problems := step.Problems(byHandProblem(t.Context(), request{Host: h})); len(problems) != 1 || problems[0].Name != "bundle" {
		t.Errorf("got %v", problems)
	}
}

func TestAChangeThatCannotBeIsRefusedByName(t *testing.T) {
	saved := local.Saved{Role: local.ControlPlane, Config: config.Default()}
	saved.Config.IPAddress = netip.MustParseAddr("10.0.0.1")
	asked := saved.Config
	asked.IPAddress, asked.FlannelBackend = netip.MustParseAddr("10.0.0.2"), "host-gw"
	from := config.Origin{Source: config.FromFlag, Where: "--flag"}
	h := &local.Host{Saved: saved, Config: asked}
	h.Config, h.Refused = saved.WithInForce(asked, config.Origins{"ipAddress": from, "flannelBackend": from})
	h.Config.IgnorePreflight = []string{"settings", "ip-address", "flannel-backend"}
	_, err := check{"settings", "", settingsProblem}.step(request{Host: h}).Check(t.Context())
	problems := step.Problems(err)
	if len(problems) != 2 || problems[0].Name != "flannel-backend" || problems[1].Name != "ip-address" {
		t.Fatalf("problems are %v", problems)
	}
	for _, part := range []string{"flannelBackend: host-gw", "vxlan"} {
		if !strings.Contains(problems[0].Error(), part) {
			t.Errorf("%q does not name %q", problems[0], part)
		}
	}
	if h.Config.FlannelBackend != "vxlan" || h.IP() != "10.0.0.1" {
		t.Errorf("the refused values are in the settings: %+v", h.Config)
	}
}

// TestAnEtcdThatEnforcesNoRightsIsRefused: a cluster of an earlier release runs
// one, and an older bundle has one. A worker runs no etcd.
func TestAnEtcdThatEnforcesNoRightsIsRefused(t *testing.T) {
	for _, c := range []struct{ role, etcd, want string }{
		{local.ControlPlane, "3.7.0-0", "etcd must be 3.7.1 or newer: 3.7.0 lets every host"}, {local.ControlPlane, "3.6.8", "etcd must be 3.6.14 or newer"}, {local.ControlPlane, "3.5.21", "etcd must be 3.6.14 or newer"},
		{local.ControlPlane, catalog.Newest().Etcd, ""}, {local.ControlPlane, "3.6.14-0", ""}, {local.Worker, "3.7.0-0", ""},
	} {
		h := &local.Host{Versions: image.Versions{Etcd: c.etcd}}
		h.Config.IgnorePreflight = []string{"etcd-version"}
		_, err := check{"etcd-version", "", etcdProblem}.step(request{Host: h, role: c.role}).Check(t.Context())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s, %s: got %v, want %q", c.role, c.etcd, err, c.want)
		}
	}
}
