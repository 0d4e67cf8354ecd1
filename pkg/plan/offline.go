package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Loaded is the role of a host that has the images and the registry
// configuration and is not part of a cluster yet.
const Loaded = "loaded"

// Load returns the plan that loads all images into the stores of this host.
// The plans of master and worker begin with the same steps.
func (h *Host) Load() step.Plan {
	return step.Plan{
		{h.remember(Loaded)},
		{h.bridge().Resume(), h.registryFiles(), h.runtime().EnableCRI()},
		{h.bootstrap().Containerd()},
		{h.bootstrap().Start(), h.source().InstallCNIPlugins()},
		{h.loadContainerd(), h.loadMain(), h.loadBootstrap("etcd"), h.loadBootstrap("flannel")},
		{h.madeDirs()},
		{h.accept(Loaded)},
	}.Within(h.timeout())
}

// TakeLoaded makes the main Docker the source of images, which the user has
// loaded there by hand, unless there is a bundle or a registry.
func (h *Host) TakeLoaded() { h.byHand = h.Config.Bundle == "" && h.registry == nil }

// preflightLoad returns the preflight checks of Load.
func (h *Host) preflightLoad() step.Plan {
	return step.Plan{
		append([]step.Step{
			h.look("role", "look for a cluster on this host", h.loadedRoleProblem),
			h.look("disk-space", "check free space", h.spaceProblem),
			h.look("arch", "check the architecture", h.archProblem),
			h.look("docker", "check Docker", h.bridge().Problems),
			h.look("containerd", "check containerd", func(context.Context) error { return h.runtime().MissingProblem() }),
			h.look("bundle", "check the bundle", func(ctx context.Context) error { return h.bundleProblem(ctx, Loaded) }),
		}, h.unanswered()...),
		{h.look("images", "look for images", h.byHandProblem)},
	}.Within(h.timeout())
}

func (h *Host) loadedRoleProblem(context.Context) error {
	if !h.installed() {
		return nil
	}
	return &step.Problem{Name: "role", Text: "this host is a " + h.saved.Role + " of a cluster already",
		Remedy: fmt.Sprintf("run `kube-bootstrap %s` with --bundle or --registry to load missing images", h.saved.Role)}
}

func (h *Host) byHandProblem(ctx context.Context) error {
	if !h.byHand {
		return nil
	}
	if h.Config.VerifyKey != "" {
		return &step.Problem{Name: "bundle", Text: "verifyKey requires a signed bundle, and images that were loaded into Docker have no signature",
			Remedy: "give a signed bundle with --bundle, or remove the key with --verify-key \"\""}
	}
	docker, err := mainDocker()
	if err != nil {
		return err
	}
	missing, err := offline.MissingIn(ctx, docker, h.images)
	if err == nil && len(missing) > 0 {
		err = &step.Problem{Name: "images", Text: "the main Docker lacks " + strings.Join(missing, ", "),
			Remedy: "load each by `docker save IMAGE | ssh HOST docker load`, or give --bundle or --registry"}
	}
	return err
}
