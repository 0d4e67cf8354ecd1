// Package joining runs kube-bootstrap on nodes that join a cluster, with tokens that a control plane of
// the cluster creates for them.
package joining

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Joining runs kube-bootstrap on hosts that join a control plane. Each worker joins with a token for
// its node only. The further control planes join with one token that is deleted
// at the end.
type Joining struct {
	Session    *session.Session
	Nodes      topology.Topology
	State      topology.State       // before the run
	First      topology.ClusterNode // the control plane that the others join
	MasterArgs []string             // further arguments of `kube-bootstrap master`
	WorkerArgs []string             // further arguments of `kube-bootstrap worker`
	ImageArgs  []string             // arguments that name the bundles; none: the nodes find their images themselves

	token lentToken // of the further control planes
}

// Step returns the step that runs `kube-bootstrap master` or `worker` on a node that joins.
func (j *Joining) Step(n topology.ClusterNode) step.Step {
	if n.Role == topology.ControlPlane {
		return RoleStep(n, j.furtherControlPlane)
	}
	return RoleStep(n, j.worker)
}

// RoleStep returns the step that runs `kube-bootstrap master` or `worker` on a
// node. It runs every time, because only kube-bootstrap on the node can compare
// the node with its settings.
func RoleStep(n topology.ClusterNode, run func(context.Context, topology.ClusterNode) error) step.Step {
	return step.Always(step.IDOf("run", n.Name), "run "+string(n.Role)+" on "+n.Name,
		func(ctx context.Context) error { return run(ctx, n) })
}

func (j *Joining) furtherControlPlane(ctx context.Context, n topology.ClusterNode) error {
	command := []string{"master", "--join"}
	if j.Nodes.OnlyControlPlanes() {
		command = append(command, "--no-dedicated")
	}
	return j.join(ctx, n, j.token.joinToken, append(command, j.MasterArgs...))
}

func (j *Joining) worker(ctx context.Context, n topology.ClusterNode) error {
	if j.State.Has(n.Name) { // kube-bootstrap worker refuses taints that its node does not have
		if err := j.label(ctx, n); err != nil {
			return err
		}
	}
	token, err := j.lend(ctx, "--node", n.Name)
	if err != nil {
		return err
	}
	err = j.join(ctx, n, token.joinToken, append([]string{"worker"}, j.WorkerArgs...))
	if err := errors.Join(err, token.end()); err != nil {
		return err
	}
	return j.label(ctx, n)
}

// label makes a control plane apply the labels and taints of a worker, which its
// own kubelet may not change, and remember them, so that later settings can
// remove them.
func (j *Joining) label(ctx context.Context, n topology.ClusterNode) error {
	marks := slices.DeleteFunc(slices.Clone(n.Spec.Args), func(arg string) bool {
		return !strings.HasPrefix(arg, "--node-label=") && !strings.HasPrefix(arg, "--node-taint=")
	})
	if len(marks) == 0 {
		return nil
	}
	return retried(ctx, func() error {
		return remote.Run(ctx, j.Session, j.First.Name, append([]string{"mark", n.Name}, marks...), nil)
	})
}

// retried repeats a command on the first control plane, whose API server restarts with another
// etcd once a second control plane serves. The limit ends the retries, not a command.
func retried(ctx context.Context, do func() error) error {
	return step.Until(step.WithLimit(ctx, 3*step.CheckLimit(ctx)), func(context.Context) error { return do() }, nil)
}

// join lets a node join. The token is in the environment, which only root of the node can read.
func (j *Joining) join(ctx context.Context, n topology.ClusterNode, token joinToken, command []string) error {
	args := append(command, "--master-ip", j.First.Addr.String(), "--ca-cert-hash", token.CACertHash)
	env := []string{"KUBE_BOOTSTRAP_TOKEN=" + token.Token}
	if token.CertificateKey != "" {
		env = append(env, "KUBE_BOOTSTRAP_CERTIFICATE_KEY="+token.CertificateKey)
	}
	return remote.Run(ctx, j.Session, n.Name, slices.Concat(args, j.ImageArgs, n.Spec.Args), env)
}

// onFirst returns the output of kube-bootstrap on the control plane that the others join.
func (j *Joining) onFirst(ctx context.Context, args ...string) (string, error) {
	s := j.Session
	return access.Output(ctx, s.Node(j.First.Name), append([]string{s.Provider.ProgramPath()}, args...)...)
}

// OpenControlPlanes returns the step that creates the token of the further control planes.
func (j *Joining) OpenControlPlanes() step.Step {
	return step.Always("create-token", "create the token of the control planes", func(ctx context.Context) (err error) {
		j.token, err = j.lend(ctx, "--control-plane", "--reusable")
		return err
	})
}

// CloseControlPlanes returns the step that deletes this token.
func (j *Joining) CloseControlPlanes() step.Step {
	return step.Always("delete-token", "delete the token of the control planes", func(context.Context) error {
		return j.endToken()
	})
}

// Revoke deletes the token of the control planes after a run that failed. If the control plane that
// created it is gone, so is the token.
func (j *Joining) Revoke() { _ = j.endToken() }

func (j *Joining) endToken() error {
	if j.token.end == nil {
		return nil
	}
	end := j.token.end
	j.token = lentToken{}
	return end()
}

// Adapt returns the step that restarts the API server of the first control plane with a second
// etcd, and spreads the CoreDNS pods, before the first snapshot. The agent there does the same
// a little later, so a failure is only reported.
func (j *Joining) Adapt() step.Step {
	return step.Always("adapt-control-plane", "adapt "+j.First.Name+" to the other nodes",
		func(ctx context.Context) error {
			_, err := j.onFirst(ctx, "keep")
			if _, failed := errors.AsType[*access.ExitError](err); failed {
				step.Report(ctx, "left for later: "+err.Error(), 0, 0)
				return nil
			}
			return err
		})
}
