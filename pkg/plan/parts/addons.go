package parts

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FurtherAddons returns the steps that apply the user's addons. Only the
// first control plane applies them. No step waits for their pods, because the
// cluster works without them.
func FurtherAddons(h *local.Host) []step.Step {
	var all []step.Step
	for _, name := range WantedAddons(h) {
		all = append(all, ApplyManifest(h, "apply addon "+name, AddonManifest(h, name)))
	}
	return all
}

// WantedAddons returns the names of the addons that this host applies.
func WantedAddons(h *local.Host) []string {
	if h.Config.Join {
		return nil
	}
	return h.Config.Addons
}

// AddonManifest returns the manifest of an addon.
func AddonManifest(h *local.Host, name string) Manifest {
	from := addon.Where(name)
	sum := sha256.Sum256([]byte(from))
	return Manifest{h, from, host.StateDir + "/addons/" + hex.EncodeToString(sum[:8]) + ".yaml"}
}
