package containers

import (
	"context"
	"errors"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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
		return Cluster{}, &step.Problem{Name: "machines", Firm: true,
			Text: "the nodes of cluster " + s.Name + " are machines, which kube-bootstrap cannot create, " +
				"stop or copy",
			Remedy: "use this command for clusters of containers only"}
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
func Begin(
	ctx context.Context, options session.Selection, scope session.Requirements,
) (Cluster, topology.State, error) {
	if err := check(options); err != nil {
		return Cluster{}, topology.State{}, err
	}
	s, state, err := session.Begin(ctx, options, scope)
	if err != nil {
		return Cluster{}, state, err
	}
	c, err := Of(s)
	return c, state, err
}

// check returns the problem that the nodes are no containers, without a connection to any.
func check(options session.Selection) error {
	s, err := session.Open(options, nil)
	if err != nil {
		return err
	}
	_, err = Of(s)
	return errors.Join(err, s.Close())
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
