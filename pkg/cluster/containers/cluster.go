package containers

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

// Cluster is a cluster of containers that a command has opened: its parts on the engine, and the
// session that all kinds of clusters have.
type Cluster struct {
	machines.Objects
	Session *session.Session
}

// Of returns the cluster of a session, or an error if its nodes are no containers.
func Of(s *session.Session) (Cluster, error) {
	p, ok := s.Provider.(DockerProvider)
	if !ok {
		return Cluster{}, fmt.Errorf("the nodes of cluster %s are no containers", s.Name)
	}
	return Cluster{machines.Of(p.Engine, s.Name), s}, nil
}

// Subnet returns the subnet of the cluster's network; the zero value if there is none.
func (c Cluster) Subnet(ctx context.Context) (netip.Prefix, error) {
	networks, err := c.Engine.Networks(ctx)
	for _, n := range networks {
		if n.Name == c.Name && n.Cluster == c.Name && len(n.Subnets) > 0 {
			return n.Subnets[0], err
		}
	}
	return netip.Prefix{}, err
}

// Begin is session.Begin for a cluster of containers. The caller closes its session.
func Begin(ctx context.Context, options session.Selection, scope session.Requirements) (Cluster, topology.State, error) {
	s, state, err := session.Begin(ctx, options, scope)
	if err != nil {
		return Cluster{}, state, err
	}
	c, err := Of(s)
	if err != nil {
		_ = s.Close()
	}
	return c, state, err
}

// Do is session.Do for a cluster of containers.
func Do(ctx context.Context, options session.Selection, scope session.Requirements,
	do func(Cluster, topology.State) error) error {
	c, state, err := Begin(ctx, options, scope)
	if err != nil {
		return err
	}
	defer c.Session.Close()
	return do(c, state)
}
