package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// loadChecks are the checks before the images of a host are loaded.
var loadChecks = []check{
	{"role", "look for a cluster on this host", loadedRoleProblem},
	{"disk-space", "check free space", spaceProblem},
	{"arch", "check the architecture", archProblem},
	{"docker", "check Docker", dockerProblem},
	{"containerd", "check containerd", func(context.Context, request) error { return containerd.MissingProblem() }},
	{"bundle", "check the bundle", bundleProblem},
}

func loadPlan(h *local.Host) step.Plan {
	r := request{h, local.Loaded}
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
	if !h.ByHand {
		return nil
	}
	if h.Config.VerifyKey != "" {
		return &step.Problem{Name: "bundle", Text: "verifyKey requires a signed bundle, and images that were loaded into Docker have no signature",
			Remedy: "give a signed bundle with --bundle, or remove the key with --verify-key \"\""}
	}
	missing, err := offline.MissingIn(ctx, local.MainDocker().Images(), image.OfEveryCluster(h.Images))
	if err == nil && len(missing) > 0 {
		err = &step.Problem{Name: "images", Text: "the main Docker lacks " + strings.Join(missing, ", "),
			Remedy: "load each by `docker save IMAGE | ssh HOST docker load`, or give --bundle or --registry"}
	}
	return err
}
