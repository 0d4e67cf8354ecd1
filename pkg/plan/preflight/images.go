package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// bundleProblem returns a problem if the bundle cannot be read, is not
// trusted, is damaged, has another version, or does not exist.
func bundleProblem(ctx context.Context, h request) error {
	if h.ImagesFrom() != local.FromBundle {
		return nil // the answers to the questions before preflight cover the other sources
	}
	problem := func(err error, remedy string) error {
		return &step.Problem{Name: "bundle", Firm: true, Text: err.Error(), Remedy: remedy}
	}
	b, err := h.Source().Open()
	switch {
	case errors.Is(err, bundle.ErrUntrusted):
		return problem(err,
			"get a bundle that is signed with this key, or set --verify-key to the public key of its signer")
	case errors.Is(err, bundle.ErrKey):
		return problem(err, "set --verify-key to the file of the signer's public key")
	case errors.Is(err, fs.ErrNotExist):
		return problem(err, "") // the error contains the remedy
	case err != nil:
		return problem(err, "create it with `kube-bootstrap offline build`")
	}
	defer b.Close()
	if has, want := b.Manifest.Versions.Kubernetes, h.Versions.Kubernetes; has != want {
		return problem(fmt.Errorf("%s contains Kubernetes %s, not %s", h.Config.Bundle, has, want),
			"give --kubernetes-version "+has+" or another bundle")
	}
	if h.Saved.Installed() || withoutIgnored(h, "arch", archProblem(ctx, h)) != nil {
		return nil
	}
	// All loads verify what they read. A host with all images reads only the CNI plugins.
	if h.Stores().Loaded(ctx, imagesFor(h), b) {
		return nil
	}
	if err := b.Check(ctx, h.Config.Arch); err != nil {
		return problem(err, "use an undamaged copy; `kube-bootstrap offline verify` checks one")
	}
	return nil
}

func imagesFor(h request) offline.Source {
	from := h.Source()
	from.Images = h.ImagesOf(h.role)
	return from
}

var loadChecks = []check{
	{"role", "look for a cluster on this host", loadedRoleProblem},
	{"disk-space", "check free space", spaceProblem},
	{"arch", "check the architecture", archProblem},
	{"docker", "check Docker", dockerProblem},
	{"containerd", "check containerd", func(context.Context, request) error { return containerd.MissingProblem() }},
	{"bundle", "check the bundle", bundleProblem},
}

// NextImages returns the checks of a run that loads the images of another version on an installed host.
func NextImages(next *local.Host, role string) step.Plan {
	checks := []check{
		{"disk-space", "check free space", roomProblem}, {"bundle", "check the bundle", bundleProblem},
	}
	r := request{next, role, parts.New(next, role)}
	return step.Plan{append(steps(r, checks), unanswered(next)...)}.Within(next.Timeout())
}

func loadPlan(h *local.Host) step.Plan {
	r := request{h, local.Loaded, parts.New(h, local.Loaded)}
	images := check{"images", "look for images", byHandProblem}
	return step.Plan{append(steps(r, loadChecks), unanswered(h)...), {images.step(r)}}.Within(h.Timeout())
}

func loadedRoleProblem(_ context.Context, h request) error {
	if !h.Saved.Installed() {
		return nil
	}
	return &step.Problem{Name: "role", Text: "this host is a " + h.Saved.Role + " of a cluster already",
		Remedy: fmt.Sprintf("run `kube-bootstrap %s` with --bundle or --registry to load missing images", h.Saved.Role)}
}

func byHandProblem(ctx context.Context, h request) error {
	if h.ImagesFrom() != local.FromDocker {
		return nil
	}
	if h.Config.VerifyKey != "" {
		return &step.Problem{Name: "bundle", Firm: true,
			Text:   "verifyKey requires a signed bundle, and images that were loaded into Docker have no signature",
			Remedy: "give a signed bundle with --bundle, or remove the key with --verify-key \"\""}
	}
	wanted := image.References(image.OfEveryCluster(h.Images))
	missing, err := offline.MissingIn(ctx, local.MainDocker().Images(), wanted)
	if err == nil && len(missing) > 0 {
		err = &step.Problem{Name: "images", Firm: true, Text: "the main Docker lacks " + strings.Join(missing, ", "),
			Remedy: "load each by `docker save IMAGE | ssh HOST docker load`, or give --bundle or --registry"}
	}
	return err
}
