package cluster

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// RemoveNode removes a node from its cluster together with its host. With force
// it does not move the pods first, and the node need not run.
func RemoveNode(ctx context.Context, options Options, name string, force bool, drain node.Drain, emit func(session.Event)) error {
	return onNodes(ctx, options, emit, func(c change) error {
		n, err := c.nodes.Pick(name)
		if err != nil {
			return err
		}
		if force {
			return c.removeAtOnce(ctx, n)
		}
		if err := c.removable(ctx, n, drain); err != nil {
			return err
		}
		m := c.machine(n)
		return c.session.Run(ctx, step.Plan{
			{m.Boot(new(docker.EngineHost))}, {c.object(ctx, n).Drain(drain)}, {c.turndown(n)}, {c.object(ctx, n).Forget()}, {m.Remove()},
		})
	})
}

func (c change) removeAtOnce(ctx context.Context, n topology.Node) error {
	remove := []step.Step{c.machine(n).Remove()}
	if preflight.LastMaster(c.nodes, c.state, n) {
		return c.session.Run(ctx, step.Plan{remove})
	}
	if err := preflight.LostQuorum(ctx, c.session, c.state); err != nil {
		return err
	}
	if !c.state.Runs(n.Name) {
		return c.session.Run(ctx, step.Plan{{c.forgetFrom(n)}, remove})
	}
	return c.session.Run(ctx, step.Plan{{c.turndown(n)}, {c.object(ctx, n).Forget()}, remove})
}

// forgetFrom returns the step by which a running control plane removes a node
// that is off from the cluster.
func (c change) forgetFrom(n topology.Node) step.Step {
	return step.Step{
		Name:  "forget " + n.Name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			master, err := c.session.RunningMaster(ctx, n.Name)
			if err != nil {
				return nil, err
			}
			known, err := knows(ctx, c.session, master, n)
			if err != nil || !known {
				return nil, err
			}
			return step.Diff{"run kube-bootstrap forget " + n.Name + " on " + master.Name}, nil
		},
		Apply: func(ctx context.Context) error {
			master, err := c.session.RunningMaster(ctx, n.Name)
			if err != nil {
				return err
			}
			return remote.Run(ctx, c.session, master.Name, []string{"forget", n.Name, "--progress", "json"}, nil)
		},
	}
}

// knows reports whether the cluster has a node: as an object, or as a member of
// its etcd that was about to become a node.
func knows(ctx context.Context, s *session.Session, master topology.NodeState, n topology.Node) (bool, error) {
	joined, err := apiserver.NodeNames(ctx, s)
	if err != nil || slices.Contains(joined, n.Name) {
		return true, err
	}
	var report struct{ Etcd []struct{ IP string } }
	err = json.Unmarshal(remote.Status(ctx, s, master).Report, &report)
	return slices.ContainsFunc(report.Etcd, func(e struct{ IP string }) bool { return e.IP == n.Addr.String() }), err
}
