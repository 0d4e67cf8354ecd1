package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// bundleProblem returns a problem if the bundle cannot be read, is not
// trusted, is damaged, has another version, or does not exist.
func bundleProblem(ctx context.Context, h request) error {
	if h.Config.Bundle == "" {
		return imagesProblem(ctx, h)
	}
	problem := func(err error, remedy string) error {
		return &step.Problem{Name: "bundle", Text: err.Error(), Remedy: remedy}
	}
	b, err := h.Source().Open()
	if errors.Is(err, bundle.ErrUntrusted) {
		return problem(err, "get a bundle that is signed with this key, or set --verify-key to the public key of its signer")
	}
	if errors.Is(err, fs.ErrNotExist) && h.Saved.Role != "" && h.Saved.Config.Bundle == h.Config.Bundle {
		return imagesProblem(ctx, h) // an installed host may not need the bundle any more
	}
	if errors.Is(err, bundle.ErrKey) {
		return problem(err, "set --verify-key to the file of the signer's public key")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return problem(err, "") // the error contains the remedy
	}
	if err != nil {
		return problem(err, "create it with `kube-bootstrap offline build`")
	}
	defer b.Close()
	if b.Versions.Kubernetes != h.Versions.Kubernetes {
		return problem(fmt.Errorf("%s contains Kubernetes %s, not %s", h.Config.Bundle, b.Versions.Kubernetes, h.Versions.Kubernetes),
			"give --kubernetes-version "+b.Versions.Kubernetes+" or another bundle")
	}
	if h.Saved.Installed() || withoutIgnored(h.Host, archProblem(ctx, h)) != nil {
		return nil
	}
	if err := b.Check(ctx, h.Config.Arch); err != nil {
		return problem(err, "use an undamaged copy; `kube-bootstrap offline verify` checks one")
	}
	return nil
}

// imagesProblem returns a problem if this host lacks images and has no bundle
// to load them from. Other checks cover registries and images that were
// loaded into Docker by hand.
func imagesProblem(ctx context.Context, h request) error {
	if h.ByHand || h.FromRegistry() {
		return nil
	}
	from := h.Source()
	from.Images = h.ImagesOf(h.role)
	stores := parts.LoadAll(h.Host, from)
	for _, f := range (&step.Runner{}).Look(ctx, step.Plan{stores}) {
		if errors.Is(f.Err, fs.ErrNotExist) {
			return &step.Problem{Name: "bundle", Text: fmt.Sprintf("this host does not have all images of Kubernetes %s, and no bundle to load them from", h.Versions.Kubernetes),
				Remedy: "give a bundle with --bundle (`kube-bootstrap offline build` creates it), or a registry with --registry"}
		}
	}
	return nil // the load steps report other errors
}
