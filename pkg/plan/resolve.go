package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// answer is the result of a question that was asked before the host is checked.
type answer struct {
	name, title string
	err         error
}

// Resolve returns a copy of this host, completed with what others know: the
// master of a joining host has the shared settings and the address of the
// registry, and the registry has the versions. It runs before all checks and
// before planning, and changes nothing. A question without an answer is one of
// the problems that Preflight reports.
func (h *Host) Resolve(ctx context.Context, role string) *Host {
	ctx = h.limited(ctx)
	resolved := *h
	resolved.answers = nil
	if role == Worker || h.Config.Join {
		resolved.ask("master", "reach the master", func() error { return resolved.askMaster(ctx) })
	}
	resolved.ask("registry", "reach the registry", func() error { return resolved.askRegistry(ctx) })
	return &resolved
}

// ask keeps the error of a question that the user does not ignore by its name.
func (h *Host) ask(name, title string, question func() error) {
	if slices.Contains(h.Config.IgnorePreflight, name) {
		return
	}
	h.answers = append(h.answers, answer{name, title, question()})
}

// unanswered are the checks that report why a question has no answer.
func (h *Host) unanswered() []step.Step {
	var looks []step.Step
	for _, a := range h.answers {
		looks = append(looks, h.look(a.name, a.title, func(context.Context) error { return a.err }))
	}
	return looks
}

// askMaster finds the cluster that this host joins, and takes over what is the
// same on all its hosts.
func (h *Host) askMaster(ctx context.Context) error {
	handover, err := h.join.Handover(ctx)
	if err != nil {
		return err
	}
	theirs, err := h.Config.WithShared(handover.Settings)
	if err != nil {
		return err
	}
	h.follow(theirs)
	if err := h.handedRegistry(handover.Registry); err != nil {
		return err
	}
	return errors.Join(h.useCatalogue(), h.joinSkewProblem(handover.ServerVersion))
}

// askRegistry takes over the versions of the bundle in the registry. One that
// this host was set up with may be away: it need not be asked for what is here.
func (h *Host) askRegistry(ctx context.Context) error {
	if h.registry == nil || h.saved.Role != "" && h.Config.Registry.Address == "" {
		return nil
	}
	if err := h.registry.Check(ctx, offline.IndexPath, false); err != nil || !h.fromRegistry() {
		return err
	}
	bundle, err := offline.OpenRegistry(ctx, h.registry, h.versions.Kubernetes, offline.SignedBy(h.Config.VerifyKey))
	switch {
	case errors.Is(err, offline.ErrUntrusted):
		return &step.Problem{Name: "bundle", Text: err.Error(), Remedy: "push one that was signed with the key, or give --verify-key another one"}
	case err != nil:
		return err
	}
	defer bundle.Close()
	if archs := bundle.Archs(); !slices.Contains(archs, h.Config.Arch) {
		return &step.Problem{Name: "bundle", Text: fmt.Sprintf("%s is for %s, not for %s", bundle.Path, strings.Join(archs, ", "), h.Config.Arch),
			Remedy: "push a bundle for this architecture too"}
	}
	h.pushed = bundle.Versions
	return h.useCatalogue()
}
