package renewal

import (
	"fmt"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestThePlansOfRenewalsHaveAnOrder: a plan without one fails only when it runs.
func TestThePlansOfRenewalsHaveAnOrder(t *testing.T) {
	cfg := config.Default()
	cfg.Addons, cfg.CACertHash = extension.ContainedAddons, "sha256:1"
	for _, role := range []string{local.ControlPlane, local.Worker} {
		h := &local.Host{Config: cfg, Files: host.Files{Root: t.TempDir()}, Join: &join.Joining{}}
		h.Saved = local.Saved{Role: role, Config: cfg}
		must.NoError(t, h.UseCatalogue())
		plans := map[string]step.Plan{"renewal": Renewal(h, Renewable())}
		for _, subject := range []string{controlplane.EncryptionKey, controlplane.AccountKey, rotation.Authorities} {
			plans["begin "+subject], plans["end "+subject] = Rotation(h, subject), EndRotation(h, subject)
			for _, phase := range []rotation.Phase{rotation.Accept, rotation.Use, rotation.Drop} {
				trust := rotation.Trust{Rotation: rotation.Rotation{Subject: subject, Phase: phase}}
				plans[fmt.Sprintf("follow %s %d", subject, phase)] = rotate(h, trust)
			}
		}
		for name, p := range plans {
			if _, err := step.NewGraph(p); err != nil || len(p) == 0 {
				t.Errorf("%s on a %s: %v", name, role, err)
			}
		}
	}
}
