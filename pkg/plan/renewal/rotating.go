package renewal

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rollout"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// rotating is a rotation as the command that drives it sees it.
type rotating struct {
	subject string
	store   rotation.StateStore
	pki     controlplane.PKI
	etcd    parts.Etcd
}

// Rotation replaces a key that all control planes have, up to the phase in which
// all use the new key and nothing but time is missing until the old one can be
// dropped. Run again after an interruption, it continues.
func Rotation(h *local.Host, subject string) step.Plan {
	p := parts.InForce(h)
	r := rotating{subject, storeOf(p.Cluster), p.ControlPlane.PKI, p.Etcd}
	steps := []step.Step{r.begin(), r.withdraw()}
	switch subject {
	case controlplane.EncryptionKey:
		steps = append(steps, r.reach(rotation.Accept), r.reach(rotation.Use), r.encryptAgain())
	case controlplane.AccountKey:
		steps = append(steps, r.reach(rotation.Accept), r.reach(rotation.Use), r.signAgain(), r.noteUntil())
	case rotation.Authorities:
		steps = append(steps, r.dropTokens(),
			r.reach(rotation.Accept), r.reachWorkers(rotation.Accept),
			r.reach(rotation.Use), r.reachWorkers(rotation.Use))
	}
	return step.InOrder(steps...).Within(max(h.Timeout(), Limit))
}

// EndRotation drops the old key after Rotation, and RotationWaits.
func EndRotation(h *local.Host, subject string) step.Plan {
	p := parts.InForce(h)
	r := rotating{subject, storeOf(p.Cluster), p.ControlPlane.PKI, p.Etcd}
	steps := []step.Step{r.reach(rotation.Drop)}
	if subject == rotation.Authorities {
		steps = append(steps, r.reachWorkers(rotation.Drop), p.ControlPlane.Publish(), p.Addons.Apply())
	}
	return step.InOrder(append(steps, r.end())...).Within(max(h.Timeout(), Limit))
}

// RotationWaits returns until when something may depend on the old key, or zero.
func RotationWaits(ctx context.Context, cluster parts.ClusterAPI) (time.Time, error) {
	now, err := rotating{store: storeOf(cluster)}.current(ctx)
	if err != nil || now.Phase > rotation.Use || time.Now().After(now.Until) {
		return time.Time{}, err
	}
	return now.Until, nil
}

// storeOf returns the state of a rotation as an administrator reads and writes it.
func storeOf(cluster parts.ClusterAPI) rotation.StateStore {
	return rotation.StateStore{API: cluster.As(controlplane.AdminConf)}
}

// begin stores the new key before any control plane uses it.
func (r rotating) begin() step.Step {
	name := "make a new " + rotation.Title(r.subject)
	if r.subject == rotation.Authorities {
		name = "make new " + rotation.Title(r.subject)
	}
	return step.When("make-key", name, name, func(ctx context.Context) (bool, error) {
		now, err := r.store.Read(ctx)
		return now == nil, err
	}, func(ctx context.Context) error {
		key, err := r.pki.NewKey(r.subject)
		if err != nil {
			return err
		}
		id := time.Now().UTC().Format(time.RFC3339)
		return r.store.Write(ctx, rotation.Rotation{ID: id, Subject: r.subject, Phase: rotation.Accept, New: key})
	})
}

// withdraw removes the uploaded keys for joining control planes, because they include
// only the old key. No keys are uploaded again until the rotation has ended.
func (r rotating) withdraw() step.Step {
	const name = "withdraw the keys for joining control planes"
	return step.When("withdraw-keys", name, name, func(ctx context.Context) (bool, error) {
		return kube.Ask(r.store.API, func(client kubernetes.Interface) (bool, error) {
			return join.Shared(ctx, client)
		})
	}, func(ctx context.Context) error {
		return r.store.API.Do(func(client kubernetes.Interface) error { return join.Unshare(ctx, client) })
	})
}

// step returns a step of the rotation, which has work until the phase last is over.
// todo returns this work.
func (r rotating) step(
	id step.ID, name string, last rotation.Phase,
	todo func(context.Context, rotation.Rotation) (step.Diff, error),
	apply func(context.Context, rotation.Rotation) error,
) step.Step {
	return step.Step{
		ID: id, Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			now, err := r.current(ctx)
			if err != nil || now.Phase > last {
				return nil, err
			}
			return todo(ctx, now)
		},
		Apply: func(ctx context.Context) error {
			now, err := r.current(ctx)
			if err != nil || now.Phase > last {
				return err
			}
			return apply(ctx, now)
		},
	}
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

// noted returns the phase that all hosts must note now.
func (r rotating) noted(ctx context.Context) (rollout.OperationPhase, error) {
	now, err := r.current(ctx)
	return now.Rollout(), err
}

func (r rotating) reach(phase rotation.Phase) step.Step {
	set := func(ctx context.Context, now rotation.Rotation) error {
		if now.Phase == phase {
			return nil
		}
		now.Phase = phase
		return r.store.Write(ctx, now)
	}
	return r.reachOn("control plane", r.etcd.ControlPlaneNames, phase, set)
}

func (r rotating) reachWorkers(phase rotation.Phase) step.Step {
	return r.reachOn("worker", r.workerNames, phase, r.publishTrust)
}

// reachOn returns the step that waits until all hosts of a kind have reached a phase.
// publish announces the phase to them.
func (r rotating) reachOn(
	kind string, hosts rollout.Hosts, phase rotation.Phase, publish func(context.Context, rotation.Rotation) error,
) step.Step {
	name := "have every " + kind + " " + phase.Of(r.subject)
	group := rollout.HostGroup{Hosts: hosts, Annotations: r.store.Notes()}
	id := step.IDOf("reach", kind, strconv.Itoa(int(phase)))
	return r.step(id, name, phase, func(ctx context.Context, now rotation.Rotation) (step.Diff, error) {
		if now.Phase < phase {
			return step.Diff{name}, nil
		}
		names, err := group.Behind(ctx, now.Rollout())
		if err != nil || len(names) == 0 {
			return nil, err
		}
		return step.Diff{name + ": " + strings.Join(names, ", ")}, nil
	}, func(ctx context.Context, now rotation.Rotation) error {
		if err := publish(ctx, now); err != nil {
			return err
		}
		err := group.Await(ctx, r.noted)
		if late, ok := errors.AsType[*rollout.BehindError](err); ok {
			return hostAway(late.Hosts, "do not "+phase.Of(r.subject))
		}
		return err
	}).Waiting()
}

func nodeNames(ctx context.Context) ([]string, error) {
	return node.Names(ctx, State.API, func(*corev1.Node) bool { return true })
}

func (r rotating) workerNames(ctx context.Context) ([]string, error) {
	controlPlanes, err := r.etcd.ControlPlaneNames(ctx)
	if err != nil {
		return nil, err
	}
	return node.Names(ctx, State.API, func(n *corev1.Node) bool { return !slices.Contains(controlPlanes, n.Name) })
}

func (r rotating) end() step.Step {
	const name = "end the rotation"
	return step.When("end-rotation", name, name, func(ctx context.Context) (bool, error) {
		now, err := r.store.Read(ctx)
		return now != nil, err
	}, r.store.Remove)
}
