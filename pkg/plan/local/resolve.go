package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Answer is the result of a question to another machine before preflight.
type Answer struct {
	Name, Title string
	Err         error
}

// Resolve returns a copy of this host that is completed with answers of other
// machines: a joining host gets the shared settings and the registry from the
// cluster, and the registry provides the versions. It changes nothing on the
// host. Preflight reports each unanswered question as a problem.
func (h *Host) Resolve(ctx context.Context, role string) *Host {
	ctx = h.Limited(ctx)
	resolved := *h
	resolved.Answers = nil
	if role == Worker || h.Config.Join {
		resolved.ask("master", "reach the master", func() error { return resolved.askMaster(ctx) })
	}
	resolved.ask("registry", "reach the registry", func() error { return resolved.askRegistry(ctx) })
	return &resolved
}

// ask records the error of a question, unless the user ignores the problem
// with this name.
func (h *Host) ask(name, title string, question func() error) {
	if slices.Contains(h.Config.IgnorePreflight, name) {
		return
	}
	h.Answers = append(h.Answers, Answer{name, title, question()})
}

// askMaster requests the join data of the cluster and adopts its shared
// settings.
func (h *Host) askMaster(ctx context.Context) error {
	handover, err := h.Join.Handover(ctx)
	if err != nil {
		return err
	}
	theirs, err := file.WithShared(h.Config, handover.Settings)
	if err != nil {
		return err
	}
	h.follow(theirs)
	if err := h.handedRegistry(handover.Registry); err != nil {
		return err
	}
	return errors.Join(h.UseCatalogue(), joinSkewProblem(h, handover.ServerVersion))
}

// askRegistry adopts the versions of the bundle in the registry. An installed
// host does not ask its saved registry, which may not be reachable any more.
func (h *Host) askRegistry(ctx context.Context) error {
	if h.RegistryLost != nil {
		return h.RegistryLost
	}
	if h.Registry == nil || h.Saved.Role != "" && h.Config.Registry.Address == "" {
		return nil
	}
	if err := h.Registry.Check(ctx, artifact.IndexPath, false); err != nil || !h.FromRegistry() {
		return err
	}
	b, err := artifact.Open(ctx, h.Registry, h.Versions.Kubernetes, bundle.SignedBy(h.Config.VerifyKey))
	switch {
	case errors.Is(err, bundle.ErrUntrusted):
		return &step.Problem{Name: "bundle", Text: err.Error(), Remedy: "push a bundle that is signed with the key of --verify-key, or set --verify-key to the public key of its signer"}
	case err != nil:
		return err
	}
	defer b.Close()
	if archs := b.Archs(); !slices.Contains(archs, h.Config.Arch) {
		return &step.Problem{Name: "bundle", Text: fmt.Sprintf("%s is for %s, not for %s", b.Path, strings.Join(archs, ", "), h.Config.Arch),
			Remedy: "push a bundle for this architecture too"}
	}
	h.pushed = b.Versions
	return h.UseCatalogue()
}
