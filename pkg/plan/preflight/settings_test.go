package preflight

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
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
	saved := local.Saved{Role: local.Master, Config: config.Default()}
	saved.Config.IPAddress = "10.0.0.1"
	asked := saved.Config
	asked.IPAddress, asked.FlannelBackend = "10.0.0.2", "host-gw"
	from := config.Origin{Source: config.FromFlag, Where: "--flag"}
	h := &local.Host{Saved: saved, Config: asked}
	h.Config, h.Refused = saved.Keep(asked, config.Origins{"ipAddress": from, "flannelBackend": from})
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
	if h.Config.FlannelBackend != "vxlan" || h.Config.IPAddress != "10.0.0.1" {
		t.Errorf("the refused values are in the settings: %+v", h.Config)
	}
}
