package preflight

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// addonProblems returns a problem for each addon whose manifest cannot be
// read.
func addonProblems(_ context.Context, h request) error {
	if h.role != local.Master {
		return nil
	}
	var errs []error
	for _, name := range parts.WantedAddons(h.Host) {
		if err := parts.AddonManifest(h.Host, name).Check(); err != nil {
			errs = append(errs, &step.Problem{Name: "addon", Text: fmt.Sprintf("addons: %s: %v", name, err),
				Remedy: "give the path or the URL of a manifest, or remove the addon from the setting"})
		}
	}
	return errors.Join(errs...)
}
