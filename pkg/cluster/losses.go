package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
)

// CleanLosses lists what Clean removes for good: hosts, snapshots and the images
// of the local registry. Remains of an interrupted run are no loss.
func CleanLosses(ctx context.Context, options Options) ([]string, error) {
	all, err := losses(ctx, options, session.ACluster, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	err = session.Do(ctx, options.Options, session.Scope{}, func(s *session.Session, _ topology.State) error {
		volumes, err := s.Cluster().Volumes(ctx)
		if slices.ContainsFunc(volumes, func(v docker.Volume) bool { return v.Name == testhost.RegistryName(s.Name) }) {
			all = append(all, "the images of the local registry")
		}
		return err
	})
	return all, err
}

// RecreateLosses lists what Up with Options.Recreate removes for good.
func RecreateLosses(ctx context.Context, options Options) ([]string, error) {
	return losses(ctx, options, session.AnEngine, func(name string) bool { return name == snapshot.First })
}

// losses lists all hosts, and the snapshots that are removed with them.
func losses(ctx context.Context, options Options, needs session.Needs, goes func(snapshot string) bool) (all []string, err error) {
	err = session.Do(ctx, options.Options, session.Scope{Needs: needs}, func(s *session.Session, state topology.State) error {
		for _, name := range state.Names() {
			all = append(all, hostLoss(name))
		}
		snapshots, err := snapshot.Losses(ctx, s, goes)
		all = append(all, snapshots...)
		return err
	})
	return all, err
}

func hostLoss(name string) string { return "host " + name + " with its volumes" }

// NodeLosses lists what RemoveNode removes for good. It returns the problems
// that RemoveNode returns before it changes anything.
func NodeLosses(ctx context.Context, options Options, name string, force bool, drain node.Drain) (losses []string, err error) {
	err = onNodes(ctx, options, nil, func(c change) error {
		n, err := c.nodes.Pick(name)
		if err != nil {
			return err
		}
		losses = []string{hostLoss(n.Name)}
		if force {
			return nil
		}
		return c.removable(ctx, n, drain)
	})
	return losses, err
}

// removable returns the problems of a removal of n that moves its pods away
// first.
func (c change) removable(ctx context.Context, n topology.Node, drain node.Drain) error {
	if err := errors.Join(preflight.CanRemove(c.nodes, c.state, n), preflight.LostQuorum(ctx, c.session, c.state)); err != nil {
		return err
	}
	_, err := c.object(ctx, n).Drain(drain).Check(ctx) // before a stopped node is started
	return err
}
