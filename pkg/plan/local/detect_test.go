package local

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAHostWithImagesIsNotSavedAsItself: its disk may be copied to other hosts.
func TestAHostWithImagesIsNotSavedAsItself(t *testing.T) {
	h := &Host{Config: config.Default()}
	h.Config.IPAddress = netip.MustParseAddr("192.0.2.1")
	must.NoError(t, detect(h))
	if h.Config.HostName == "" || h.IP() != "192.0.2.1" {
		t.Fatalf("detected %q, %q", h.Config.HostName, h.Config.IPAddress)
	}
	if saved := Portable(h); saved.HostName != "" || saved.IPAddress != h.Config.IPAddress {
		t.Errorf("a host with images keeps the name %q and the address %q", saved.HostName, saved.IPAddress)
	}
	h.Config.Join, h.Config.KeepImages = true, true
	if saved := Transferable(h.Config); saved.HostName != "" || saved.IPAddress.IsValid() || saved.KubernetesVersion != h.Config.KubernetesVersion {
		t.Errorf("after turndown: %q, %q, %q", saved.HostName, saved.IPAddress, saved.KubernetesVersion)
	} else if saved.Join || saved.KeepImages {
		t.Errorf("after turndown --keep-images of a joined control plane: %+v", saved)
	}
}

// TestSettingsToJoin: preflight lists what is missing, and asks no master.
func TestSettingsToJoin(t *testing.T) {
	h := &Host{Config: config.Default()}
	answers := h.Resolve(t.Context(), Worker).Answers
	if len(answers) == 0 || answers[0].Name != "join-settings" || len(step.Problems(answers[0].Err)) != 1 {
		t.Fatalf("got %v", answers)
	}
	for _, field := range []string{"masterIP", "token", "caCertHash"} {
		if !strings.Contains(answers[0].Err.Error(), field+": Required value") {
			t.Errorf("no word about %s: %v", field, answers[0].Err)
		}
	}
}
