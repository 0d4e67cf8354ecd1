package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func addonProblems(ctx context.Context, h request) error {
	if h.role != local.ControlPlane {
		return nil
	}
	var errs []error
	for _, name := range h.parts.Addons.Wanted {
		if addon.Contained(name) {
			errs = append(errs, containedProblem(h, name))
			continue
		}
		if h.Restoring { // the backup has copies of the manifests
			continue
		}
		if err := h.parts.Addons.Manifests.Addon(name).Check(ctx); err != nil {
			errs = append(errs, &step.Problem{Name: "addon", Text: fmt.Sprintf("addons: %s: %v", name, err),
				Remedy: "give the path or the URL of a manifest, or remove the addon from the setting"})
		}
	}
	return errors.Join(append(errs, droppedProblem(ctx, h))...)
}

func containedProblem(h request, name string) error {
	if h.ImagesFrom() != local.FromBundle {
		return nil
	}
	b, err := h.Source().Open()
	if err != nil {
		return nil // bundleProblem reports it
	}
	defer b.Close()
	for _, img := range h.Images {
		if img.Addon != name {
			continue
		}
		if _, err := b.Find(img.Ref, h.Config.Arch); err != nil {
			return &step.Problem{Name: "addon", Text: fmt.Sprintf("addons: %s: %v", name, err),
				Remedy: "build the bundle with `kube-bootstrap offline build`, " +
					"or remove the addon from the setting (`--addons none`: no addon)"}
		}
	}
	return nil
}

// droppedProblem returns a problem if volumes depend on an addon that the
// settings do not have any more. If no API server answers, the step that removes
// the addon returns it.
func droppedProblem(ctx context.Context, h request) error {
	ctx, cancel := step.Checking(h.Limited(ctx))
	defer cancel()
	for _, name := range h.parts.Addons.Dropped {
		if err := h.parts.Addons.Needed(ctx, name); len(step.Problems(err)) > 0 {
			return err
		}
	}
	return nil
}

func networkProblem(ctx context.Context, h request) error {
	contained := slices.Contains([]string{extension.CNINone, extension.CNIFlannel}, h.Config.CNIPlugin)
	if h.role != local.ControlPlane || h.Config.Join || h.ManagesNetwork() || contained || h.Restoring {
		return nil
	}
	if err := h.parts.Addons.Manifests.Network(h.Config.CNIPlugin).Check(ctx); err != nil {
		return &step.Problem{Name: "cni-plugin", Text: fmt.Sprintf("cniPlugin: %s: %v", h.Config.CNIPlugin, err),
			Remedy: "give the path or the URL of the plugin's manifest, or one of bridge, flannel, calico, none"}
	}
	return nil
}
