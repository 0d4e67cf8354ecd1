package cluster

import (
	"cmp"
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/joining"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// change is one command that creates or changes nodes of a cluster.
type change struct {
	cluster containers.Cluster
	options Options // with the recorded settings
	nodes   topology.Topology
	state   topology.State // before the run
	source  source
}

// openChange opens a cluster that has nodes, for one run at a time. The caller closes it.
func openChange(ctx context.Context, options Options, emit func(session.HostEvent)) (change, error) {
	scope := session.Requirements{Needs: session.Nodes, Lock: session.ClusterLock, Emit: emit}
	o, err := open(ctx, options, scope)
	if err != nil {
		return change{}, err
	}
	c, err := o.change(ctx)
	if err != nil {
		o.close()
	}
	return c, err
}

func (o opened) change(ctx context.Context) (change, error) {
	options, err := o.options.recorded(ctx, o.cluster, o.state)
	if err != nil {
		return change{}, err
	}
	options, source, err := options.source(ctx, o.cluster.Session)
	return change{o.cluster, options, options.Topology(o.cluster.Name, o.state), o.state, source}, err
}

// openNode is openChange for one node of the cluster.
func openNode(
	ctx context.Context, options Options, name string, emit func(session.HostEvent),
) (change, topology.ClusterNode, error) {
	c, err := openChange(ctx, options, emit)
	if err != nil {
		return c, topology.ClusterNode{}, err
	}
	n, err := c.nodes.Pick(name)
	if err != nil {
		c.close()
	}
	return c, n, err
}

func (c change) close() { _ = c.cluster.Session.Close() }

// run applies a plan. If it fails, the next run continues.
func (c change) run(ctx context.Context, plan step.Plan) error {
	return c.cluster.Session.Run(ctx, plan)
}

// recorded returns the options with the existing nodes and with what else the cluster has.
func (o Options) recorded(ctx context.Context, c containers.Cluster, state topology.State) (Options, error) {
	o.Request = o.Of(state)
	subnet, err := c.Subnet(ctx)
	if err != nil {
		return o, err
	}
	if subnet.IsValid() {
		o.Subnet = subnet
	}
	r, err := c.Session.UpRecord(ctx)
	if err != nil || r == nil {
		return o, err
	}
	o.HostImage, o.APIPort = cmp.Or(r.HostImage, o.HostImage), cmp.Or(r.APIPort, o.APIPort)
	made, err := r.Settings.Config()
	o.Registry, o.Balanced = testhost.RegistryOf(made), made.LoadBalancerAddresses
	return o, err
}

// join returns what joins nodes to a control plane.
func (c change) join(first topology.ClusterNode) *joining.Joining {
	return &joining.Joining{
		Session: c.cluster.Session, Nodes: c.nodes, State: c.state, First: first,
		MasterArgs: c.options.MasterArgs, WorkerArgs: c.options.WorkerArgs, ImageArgs: c.source.args(),
	}
}

func (c change) machine(n topology.ClusterNode) testhost.Machine {
	return testhost.NewMachine(c.cluster, c.nodes, n)
}

// object returns the node in the API of another control plane than the node itself.
func (c change) object(ctx context.Context, n topology.ClusterNode) node.Node {
	return node.Node{API: apiserver.Connect(ctx, c.cluster.Session, n.Name), Name: n.Name}
}

func (c change) turndown(n topology.ClusterNode) step.Step {
	return step.When(step.IDOf("turndown", n.Name), "turn "+n.Name+" down", "run kube-bootstrap turndown on "+n.Name,
		func(ctx context.Context) (bool, error) {
			state, err := c.cluster.Session.Observe(ctx)
			return state.Runs(n.Name), err
		}, func(ctx context.Context) error {
			return remote.Run(ctx, c.cluster.Session, n.Name, []string{"turndown", "--yes", "--keep-images"}, nil)
		}).Waiting()
}
