package local

import (
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// TestAVerificationKeyStays: only a run that gives another key, or an empty one,
// changes it, on a host with loaded images too.
func TestAVerificationKeyStays(t *testing.T) {
	for _, role := range []string{ControlPlane, Worker, Loaded} {
		saved := Saved{Role: role, Config: config.Default()}
		saved.Config.VerifyKey = "/etc/our.pub"
		for given, want := range map[string]string{"": "/etc/our.pub", "given": "", "other": "/etc/other.pub"} {
			asked, origins := config.Default(), config.Origins{"bundle": {Source: config.FromFile}}
			if given != "" {
				origins["verifyKey"] = config.Origin{Source: config.FromFlag}
			}
			if given == "other" {
				asked.VerifyKey = "/etc/other.pub"
			}
			if kept, _ := saved.WithInForce(asked, origins); kept.VerifyKey != want {
				t.Errorf("%s, %q: got %q, want %q", role, given, kept.VerifyKey, want)
			}
		}
	}
}

func TestAHostThatJoinsTakesTheClustersSettings(t *testing.T) {
	theirs := config.Default()
	theirs.ServiceNetwork, theirs.FlannelIPMasq = config.Networks{netip.MustParsePrefix("10.97.0.0/16")}, false
	h := &Host{Config: config.Default(), Given: config.Origins{"flannelIPMasq": {Source: config.FromFlag, Where: "--flannel-ipmasq"}}}
	h.follow(theirs)
	if h.Config.ServiceNetwork.String() != "10.97.0.0/16" || h.Config.FlannelIPMasq {
		t.Errorf("settings are %+v", h.Config)
	}
	if len(h.Refused) != 1 || h.Refused[0].Field != "flannelIPMasq" {
		t.Errorf("refused are %+v", h.Refused)
	}
}
