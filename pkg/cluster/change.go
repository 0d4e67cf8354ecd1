package cluster

import (
	"cmp"
	"context"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// change is one command that creates or changes nodes of a cluster.
type change struct {
	session *session.Session
	options Options // with the recorded settings
	nodes   topology.Topology
	state   topology.State // before the run
	source  source
}

// onNodes calls do for a cluster that has nodes, one run at a time.
func onNodes(ctx context.Context, options Options, emit func(session.Event), do func(change) error) error {
	scope := session.Scope{Needs: session.Nodes, Lock: session.ClusterLock, Emit: emit}
	return open(ctx, options, scope, func(s *session.Session, state topology.State, o Options) error {
		o, err := o.recorded(ctx, s, state)
		if err != nil {
			return err
		}
		o, source, err := o.source(ctx, s)
		if err != nil {
			return err
		}
		return do(change{s, o, o.Topology(s.Name, state), state, source})
	})
}

// onNode calls do for one node of a cluster.
func onNode(ctx context.Context, options Options, name string, emit func(session.Event), do func(change, topology.Node) error) error {
	return onNodes(ctx, options, emit, func(c change) error {
		n, err := c.nodes.Pick(name)
		if err != nil {
			return err
		}
		return do(c, n)
	})
}

// recorded returns the options with the existing nodes and with what else the cluster has.
func (o Options) recorded(ctx context.Context, s *session.Session, state topology.State) (Options, error) {
	o.Request = o.Of(state)
	subnet, err := s.Subnet(ctx)
	if err != nil {
		return o, err
	}
	if subnet.IsValid() {
		o.Subnet = subnet
	}
	r, err := s.UpRecord(ctx)
	if err == nil && r != nil {
		o.HostImage, o.APIPort = cmp.Or(r.HostImage, o.HostImage), cmp.Or(r.APIPort, o.APIPort)
		o.Registry = testhost.RegistryOf(r.Settings)
		o.Balanced = config.Config{LoadBalancerAddresses: strings.Split(r.Settings.Value("loadBalancerAddresses"), ",")}.LoadBalancerRanges()
	}
	return o, err
}

func (c change) machine(n topology.Node) testhost.Machine {
	return testhost.NewMachine(c.session, c.nodes, n)
}

// object returns the node in the API of another control plane than the node itself.
func (c change) object(ctx context.Context, n topology.Node) node.Node {
	return node.Node{API: apiserver.Connect(ctx, c.session, n.Name), Name: n.Name}
}

func (c change) turndown(n topology.Node) step.Step {
	return step.When("turn "+n.Name+" down", "run kube-bootstrap turndown on "+n.Name, func(ctx context.Context) (bool, error) {
		state, err := c.session.Observe(ctx)
		return state.Runs(n.Name), err
	}, func(ctx context.Context) error {
		return remote.Run(ctx, c.session, n.Name, []string{"turndown", "--yes", "--keep-images"}, nil)
	}).Waiting()
}
