package cluster

import (
	"context"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/requirements"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Hosts creates bare hosts, waits until each runs its Docker, and installs kube-bootstrap there
// without running it. Hosts that exist are started.
func Hosts(ctx context.Context, options Options, emit func(session.HostEvent)) ([]topology.ClusterNode, error) {
	o, err := open(ctx, options, session.Requirements{Lock: session.ClusterLock, Emit: emit})
	if err != nil {
		return nil, err
	}
	defer o.close()
	t := o.options.Topology(o.cluster.Name, o.state)
	nodes := t.Nodes()
	var install []step.Step
	for _, n := range nodes {
		install = append(install, remote.PutBinary(o.cluster.Session, n.Name, o.options.Binary))
	}
	return nodes, begin(ctx, o.options.setup(o.cluster, t), o.options, step.Step{}, nodes, step.Plan{install})
}

// FreeSubnet returns the network of a cluster: its existing network, or else a free network.
// Until the caller calls release, no other run chooses the free network.
func FreeSubnet(ctx context.Context, options session.Selection) (subnet netip.Prefix, release func(), err error) {
	c, _, err := containers.Begin(ctx, options, session.Requirements{})
	if err != nil {
		return subnet, nil, err
	}
	defer c.Session.Close()
	if subnet, err = c.Subnet(ctx); err != nil || subnet.IsValid() {
		return subnet, func() {}, err
	}
	return requirements.FreeSubnet(ctx, c)
}
