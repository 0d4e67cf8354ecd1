package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// furtherAddons returns the steps that apply the user's addons. Only the
// first control plane applies them. No step waits for their pods, because the
// cluster works without them.
func (h *Host) furtherAddons() []step.Step {
	var all []step.Step
	for _, name := range h.wantedAddons() {
		all = append(all, h.applyManifest("apply addon "+name, h.addonManifest(name)))
	}
	return all
}

func (h *Host) wantedAddons() []string {
	if h.Config.Join {
		return nil
	}
	return h.Config.Addons
}

func (h *Host) addonManifest(name string) manifest {
	from := addon.Where(name)
	sum := sha256.Sum256([]byte(from))
	return manifest{h, from, host.StateDir + "/addons/" + hex.EncodeToString(sum[:8]) + ".yaml"}
}

// addonProblems returns a problem for each addon whose manifest cannot be
// read.
func (h *Host) addonProblems(role string) error {
	if role != Master {
		return nil
	}
	var errs []error
	for _, name := range h.wantedAddons() {
		if err := h.addonManifest(name).check(); err != nil {
			errs = append(errs, &step.Problem{Name: "addon", Text: fmt.Sprintf("addons: %s: %v", name, err),
				Remedy: "give the path or the URL of a manifest, or remove the addon from the setting"})
		}
	}
	return errors.Join(errs...)
}
