package renewal

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// rotating is a rotation as the command that drives it sees it.
type rotating struct {
	*local.Host
	subject string
	store   rotation.Store
}

// Rotation replaces a key that all control planes have, up to the phase in which
// all use the new key and nothing but time is missing until the old one can be
// dropped. Run again after an interruption, it continues.
func Rotation(h *local.Host, subject string) step.Plan {
	r := rotationOf(h, subject)
	plan := step.Plan{{r.begin()}, {r.withdraw()}}
	switch subject {
	case controlplane.EncryptionKey:
		plan = append(plan, r.reach(rotation.Accept), r.reach(rotation.Use), []step.Step{r.encryptAgain()})
	case controlplane.AccountKey:
		plan = append(plan, r.reach(rotation.Accept), r.reach(rotation.Use), []step.Step{r.signAgain()}, []step.Step{r.noteUntil()})
	case rotation.Authorities:
		plan = append(plan, []step.Step{r.dropTokens()}, r.reach(rotation.Accept), r.reachWorkers(rotation.Accept), r.reach(rotation.Use), r.reachWorkers(rotation.Use))
	}
	return plan.Within(max(h.Timeout(), Limit))
}

// EndRotation drops the old key after Rotation, and RotationWaits.
func EndRotation(h *local.Host, subject string) step.Plan {
	r := rotationOf(h, subject)
	plan := step.Plan{r.reach(rotation.Drop)}
	if subject == rotation.Authorities {
		plan = append(plan, r.reachWorkers(rotation.Drop), []step.Step{parts.Publish(h)}, []step.Step{parts.ApplyAddons(h)})
	}
	return append(plan, []step.Step{r.end()}).Within(max(h.Timeout(), Limit))
}

// RotationWaits returns until when something may depend on the old key; zero if
// nothing does.
func RotationWaits(ctx context.Context, h *local.Host, subject string) (time.Time, error) {
	now, err := rotationOf(h, subject).current(ctx)
	if err != nil || now.Phase > rotation.Use || time.Now().After(now.Until) {
		return time.Time{}, err
	}
	return now.Until, nil
}

func rotationOf(h *local.Host, subject string) rotating {
	return rotating{h, subject, rotation.Store{API: parts.AnyServer(h, controlplane.AdminConf)}}
}

// begin stores the new key before any control plane uses it.
func (r rotating) begin() step.Step {
	name := "make a new " + rotation.Title(r.subject)
	if r.subject == rotation.Authorities {
		name = "make new " + rotation.Title(r.subject)
	}
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			now, err := r.store.Read(ctx)
			if err != nil || now != nil {
				return nil, err
			}
			return step.Diff{name}, nil
		},
		Apply: func(ctx context.Context) error {
			key, err := parts.PKI(r.Host).NewKey(r.subject)
			if err != nil {
				return err
			}
			id := time.Now().UTC().Format(time.RFC3339)
			return r.store.Write(ctx, rotation.Rotation{ID: id, Subject: r.subject, Phase: rotation.Accept, New: key})
		},
	}
}

// withdraw removes the uploaded keys for joining control planes, because they include
// only the old key. No keys are uploaded again until the rotation has ended.
func (r rotating) withdraw() step.Step {
	const name = "withdraw the keys for joining control planes"
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			client, err := r.store.API.Client()
			if err != nil {
				return nil, err
			}
			if shared, err := join.Shared(ctx, client); err != nil || !shared {
				return nil, err
			}
			return step.Diff{name}, nil
		},
		Apply: func(ctx context.Context) error {
			client, err := r.store.API.Client()
			if err != nil {
				return err
			}
			return join.Unshare(ctx, client)
		},
	}
}

// reach has all control planes reach a phase.
func (r rotating) reach(phase rotation.Phase) []step.Step {
	name := "have every control plane " + phase.Of(r.subject)
	return []step.Step{{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			now, err := r.current(ctx)
			switch {
			case err != nil || now.Phase > phase:
				return nil, err
			case now.Phase < phase:
				return step.Diff{name}, nil
			}
			names, err := r.behind(ctx, now, parts.ControlPlaneNames(r.Host))
			if err != nil || len(names) == 0 {
				return nil, err
			}
			return step.Diff{name + ": " + strings.Join(names, ", ")}, nil
		},
		Waits: true,
		Apply: func(ctx context.Context) error {
			if err := r.set(ctx, phase); err != nil {
				return err
			}
			return r.await(ctx, phase, parts.ControlPlaneNames(r.Host))
		},
	}}
}

// await waits until all of these hosts have reached the phase.
func (r rotating) await(ctx context.Context, phase rotation.Phase, hosts hostNames) error {
	var last []string
	err := step.Until(ctx, func(ctx context.Context) error {
		now, err := r.current(ctx)
		if err != nil {
			return err
		}
		names, err := r.behind(ctx, now, hosts)
		if err != nil || len(names) == 0 {
			return err
		}
		last = names
		return errors.New("wait for " + strings.Join(names, ", "))
	}, nil)
	if err != nil && ctx.Err() == nil && len(last) > 0 {
		err = hostAway(last, "do not "+phase.Of(r.subject))
	}
	return err
}

func (r rotating) set(ctx context.Context, phase rotation.Phase) error {
	now, err := r.current(ctx)
	if err != nil || now.Phase >= phase {
		return err
	}
	now.Phase = phase
	return r.store.Write(ctx, now)
}

// current returns the rotation, which must be under way.
func (r rotating) current(ctx context.Context) (rotation.Rotation, error) {
	now, err := r.store.Read(ctx)
	if err == nil && now == nil {
		err = errors.New("another command has ended the rotation")
	}
	if err != nil {
		return rotation.Rotation{}, err
	}
	return *now, nil
}

// hostNames returns the names of some hosts of the cluster.
type hostNames func(context.Context) ([]string, error)

// behind returns the hosts that have not reached the phase.
func (r rotating) behind(ctx context.Context, now rotation.Rotation, hosts hostNames) ([]string, error) {
	all, err := hosts(ctx)
	if err != nil {
		return nil, err
	}
	return r.store.Behind(ctx, now, all)
}

// hostAway is the problem that a rotation has to wait for hosts [host-away].
func hostAway(names []string, what string) *step.Problem {
	list := strings.Join(names, ", ")
	return &step.Problem{
		Name: "host-away", Firm: true, Text: "hosts " + list + " " + what,
		Remedy: "start them and their agent, or, if one is gone for good, run `kube-bootstrap forget NAME`; then run the same command again",
	}
}

func (r rotating) end() step.Step {
	return step.Step{
		Name: "end the rotation",
		Check: func(ctx context.Context) (step.Diff, error) {
			now, err := r.store.Read(ctx)
			if err != nil || now == nil {
				return nil, err
			}
			return step.Diff{"end the rotation"}, nil
		},
		Apply: func(ctx context.Context) error {
			if err := r.store.RemoveTrust(ctx); err != nil {
				return err
			}
			return r.store.Remove(ctx)
		},
	}
}
