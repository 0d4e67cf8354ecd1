package cluster

import (
	"context"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Hosts creates bare hosts, waits until each runs its Docker, and installs kube-bootstrap there
// without running it. Hosts that exist are started.
func Hosts(ctx context.Context, options Options, emit func(session.Event)) (nodes []topology.Node, err error) {
	scope := session.Scope{Lock: session.ClusterLock, Emit: emit}
	err = open(ctx, options, scope, func(s *session.Session, state topology.State, o Options) error {
		t := o.Topology(s.Name, state)
		nodes = t.Nodes()
		var install []step.Step
		for _, n := range nodes {
			install = append(install, remote.PutBinary(s, n.Name, o.Binary))
		}
		return begin(ctx, o.setup(s, t), o, step.Step{}, nodes, step.Plan{install})
	})
	return nodes, err
}

// FreeSubnet returns the network of a cluster: its existing network, or else a free network.
// Until the caller calls release, no other run chooses the free network.
func FreeSubnet(ctx context.Context, options session.Options) (subnet netip.Prefix, release func(), err error) {
	err = session.Do(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) (err error) {
		release = func() {}
		if subnet, err = s.Subnet(ctx); err == nil && !subnet.IsValid() {
			subnet, release, err = preflight.FreeSubnet(ctx, s)
		}
		return err
	})
	return subnet, release, err
}
