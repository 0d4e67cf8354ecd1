package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/requirements"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/joining"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// AddNode adds a node and returns its name. If it fails, it removes what it has
// created, unless Options.Retain is set.
func AddNode(
	ctx context.Context, options Options, spec topology.Spec, emit func(session.HostEvent),
) (name string, err error) {
	c, err := openChange(ctx, options, emit)
	if err != nil {
		return "", err
	}
	defer c.close()
	n, err := c.newcomer(ctx, spec)
	if err != nil {
		return "", err
	}
	c.nodes = c.with(n)
	return n.Name, c.add(ctx, n)
}

// add creates the host of a new node, and lets it join.
func (c change) add(ctx context.Context, n topology.ClusterNode) error {
	c, join, err := c.joining(ctx)
	if err != nil {
		return err
	}
	prepared, err := c.preparedDisk(ctx, n)
	if err != nil {
		return err
	}
	if err = c.run(ctx, c.addPlan(n, join, prepared)); err == nil {
		return nil
	}
	join.Revoke()
	if c.options.Retain {
		return err
	}
	return errors.Join(err, c.takeBack(ctx, n))
}

// with returns the topology of the cluster with one more node.
func (c change) with(n topology.ClusterNode) topology.Topology {
	request := c.options.Request
	request.Nodes = []topology.Spec{n.Spec}
	return request.Topology(c.cluster.Name, c.state)
}

// newcomer returns the node that is to join. A node that a killed run did not
// finish is finished, even if the API server has it.
func (c change) newcomer(ctx context.Context, spec topology.Spec) (topology.ClusterNode, error) {
	joined, err := apiserver.NodeNames(ctx, c.cluster.Session)
	if err != nil {
		return topology.ClusterNode{}, err
	}
	if begun, ok := c.state.Node(c.cluster.Name + "-" + spec.Name); ok && !complete(ctx, c.cluster.Session, begun) {
		joined = slices.DeleteFunc(joined, func(name string) bool { return name == begun.Name })
	}
	spec.Name = cmp.Or(spec.Name, topology.FreeName(spec.Role, func(name string) bool {
		return slices.Contains(joined, c.cluster.Name+"-"+name)
	}))
	nodes := c.with(topology.ClusterNode{Spec: spec})
	n := nodes.Node(spec.HostName(c.cluster.Name))
	if err := canJoin(nodes, n, joined); err != nil || c.state.Has(n.Name) {
		return n, err
	}
	return n, errors.Join(requirements.Balanced(nodes, c.options.Balanced), requirements.NewNode(ctx, c.cluster, n))
}

// joining returns what joins a node to a running cluster, and the change with the source of its images.
func (c change) joining(ctx context.Context) (change, *joining.Joining, error) {
	controlPlane, err := c.cluster.Session.RunningControlPlane(ctx, "")
	if err != nil {
		return c, nil, err
	}
	c.source.shared = c.options.Bundle != "" || access.Run(ctx, c.cluster.Session.Node(controlPlane.Name), "test", "-e",
		testhost.SharedDir+"/"+session.BundleName) == nil
	asNew := c
	asNew.state = topology.State{} // a node that a killed run did not finish counts as new
	return c, asNew.join(controlPlane.ClusterNode), nil
}

func (c change) addPlan(n topology.ClusterNode, join *joining.Joining, prepared testhost.PreparedDisk) step.Plan {
	setup, controlPlane := c.options.setup(c.cluster, c.nodes), n.Role == topology.ControlPlane
	return step.Plan{
		{testhost.ImageStep(c.cluster, c.nodes.Variant(n)), c.machine(n).RemoveOldVolume(), setup.Share()},
		{setup.EngineFacts(requirements.DiskSpace)},
		{prepared.CopyTo([]testhost.Machine{c.machine(n)}).If(!c.state.Has(n.Name))},
		{setup.Boot(n)},
		{remote.PutBinary(c.cluster.Session, n.Name, c.options.Binary)},
		{join.OpenControlPlanes().If(controlPlane)}, {join.Step(n)}, {join.CloseControlPlanes().If(controlPlane)},
		{join.Adapt().If(controlPlane)},
	}
}

// complete reports whether a node lacks nothing. A node that is off was complete before.
func complete(ctx context.Context, s *session.Session, n topology.NodeState) bool {
	if !n.Running() {
		return true
	}
	report, err := remote.Status(ctx, s, n).Read()
	return err == nil && report.UpToDate
}

// canJoin returns the problems of a node that is to join; t contains the node.
func canJoin(t topology.Topology, n topology.ClusterNode, joined []string) error {
	errs := []error{topology.BadName(n.Spec.Name)}
	if slices.Contains(joined, n.Name) {
		errs = append(errs, &step.Problem{Name: "node-exists", Text: "there is a node " + n.Name + " already",
			Remedy: "use another --name, or `kube-bootstrap node start " + n.Name + " --cluster " + t.Cluster() + "`"})
	}
	if n.Role == topology.ControlPlane && t.ControlPlanes() > topology.MaxControlPlanes {
		errs = append(errs, &step.Problem{
			Name: "cluster-size", Text: fmt.Sprintf("cluster %s has %d control planes",
				t.Cluster(), topology.MaxControlPlanes), Remedy: "add workers",
		})
	}
	if !topology.HasRoom(t.Subnet(), n.Addr) {
		errs = append(errs, &step.Problem{
			Name: "cluster-subnet", Text: fmt.Sprintf("%s has no address left", t.Subnet()), Remedy: "remove a node",
		})
	}
	return errors.Join(errs...)
}

// takeBack removes a node that could not join.
func (c change) takeBack(ctx context.Context, n topology.ClusterNode) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	return c.run(ctx, step.Plan{{c.turndown(n)}, {c.object(ctx, n).Forget()}, {c.machine(n).Remove()}})
}

// StopNode moves a node's pods away, unless force is set, and shuts the node down.
func StopNode(
	ctx context.Context, options Options, name string, force bool, drain node.Drain, emit func(session.HostEvent),
) error {
	c, n, err := openNode(ctx, options, name, emit)
	if err != nil {
		return err
	}
	defer c.close()
	stop := c.machine(n).Stop()
	if force || !c.state.Runs(n.Name) {
		return c.run(ctx, step.Plan{{stop}})
	}
	if err := errors.Join(preflight.CanStop(c.nodes, c.state, n),
		preflight.LostQuorum(ctx, c.cluster.Session, c.state)); err != nil {
		return err
	}
	return c.run(ctx, step.Plan{{c.object(ctx, n).Drain(drain)}, {stop}})
}

// StartNode starts a node and waits until it accepts pods again.
func StartNode(ctx context.Context, options Options, name string, emit func(session.HostEvent)) error {
	c, n, err := openNode(ctx, options, name, emit)
	if err != nil {
		return err
	}
	defer c.close()
	if err := preflight.CanStart(c.nodes, c.state, n); err != nil {
		return err
	}
	setup := c.options.setup(c.cluster, c.nodes)
	return c.run(ctx, step.Plan{
		{setup.Share()},
		{setup.LoadBalancer(), setup.Boot(n)},
		{setup.LocalRegistry()},
		{testhost.NewWaiter(c.cluster).Step(n.Name)},
		{node.Node{API: apiserver.Connect(ctx, c.cluster.Session, ""), Name: n.Name}.Uncordon()},
	})
}

// RemoveNode removes a node from its cluster together with its host. With force
// it does not move the pods first, and the node need not run.
func RemoveNode(
	ctx context.Context, options Options, name string, force bool, drain node.Drain, emit func(session.HostEvent),
) error {
	c, n, err := openNode(ctx, options, name, emit)
	if err != nil {
		return err
	}
	defer c.close()
	if force {
		return c.removeAtOnce(ctx, n)
	}
	if err := c.removable(ctx, n, drain); err != nil {
		return err
	}
	setup := c.options.setup(c.cluster, c.nodes)
	return c.run(ctx, step.Plan{
		{setup.Share()}, {setup.Boot(n)}, {c.object(ctx, n).Drain(drain)}, {c.turndown(n)}, {c.object(ctx, n).Forget()},
		{c.machine(n).Remove()},
	})
}

// NodeLosses lists what RemoveNode removes for good. It returns the problems
// that RemoveNode returns before it changes anything.
func NodeLosses(
	ctx context.Context, options Options, name string, force bool, drain node.Drain,
) (losses []string, err error) {
	c, n, err := openNode(ctx, options, name, nil)
	if err != nil {
		return nil, err
	}
	defer c.close()
	losses = []string{hostLoss(n.Name)}
	if force {
		return losses, nil
	}
	return losses, c.removable(ctx, n, drain)
}

// removable returns the problems of a removal of n that moves its pods away first.
func (c change) removable(ctx context.Context, n topology.ClusterNode, drain node.Drain) error {
	if err := errors.Join(preflight.CanRemove(c.nodes, c.state, n),
		preflight.LostQuorum(ctx, c.cluster.Session, c.state)); err != nil {
		return err
	}
	_, err := c.object(ctx, n).Drain(drain).Check(ctx) // before a stopped node is started
	return err
}

func (c change) removeAtOnce(ctx context.Context, n topology.ClusterNode) error {
	remove := []step.Step{c.machine(n).Remove()}
	if preflight.LastControlPlane(c.nodes, c.state, n) {
		return c.run(ctx, step.Plan{remove})
	}
	if err := preflight.LostQuorum(ctx, c.cluster.Session, c.state); err != nil {
		return err
	}
	if !c.state.Runs(n.Name) {
		return c.run(ctx, step.Plan{{c.forgetFrom(n)}, remove})
	}
	return c.run(ctx, step.Plan{{c.turndown(n)}, {c.object(ctx, n).Forget()}, remove})
}

// forgetFrom returns the step by which a control plane removes a node that is off.
func (c change) forgetFrom(n topology.ClusterNode) step.Step {
	return step.Step{
		ID: step.IDOf("forget", n.Name), Name: "forget " + n.Name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			controlPlane, err := c.cluster.Session.RunningControlPlane(ctx, n.Name)
			if err != nil {
				return nil, err
			}
			known, err := knows(ctx, c.cluster.Session, controlPlane, n)
			if err != nil || !known {
				return nil, err
			}
			return step.Diff{"run kube-bootstrap forget " + n.Name + " on " + controlPlane.Name}, nil
		},
		Apply: func(ctx context.Context) error {
			controlPlane, err := c.cluster.Session.RunningControlPlane(ctx, n.Name)
			if err != nil {
				return err
			}
			return remote.Run(ctx, c.cluster.Session, controlPlane.Name, []string{"forget", n.Name}, nil)
		},
	}
}

// knows reports whether the cluster has a node: as an object, or as a member of
// its etcd that was about to become a node.
func knows(
	ctx context.Context, s *session.Session, controlPlane topology.NodeState, n topology.ClusterNode,
) (bool, error) {
	joined, err := apiserver.NodeNames(ctx, s)
	if err != nil || slices.Contains(joined, n.Name) {
		return true, err
	}
	report, err := remote.Status(ctx, s, controlPlane).Read()
	return slices.ContainsFunc(report.Etcd, func(e struct{ IP string }) bool { return e.IP == n.Addr.String() }), err
}
