package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// AddNode adds a node and returns its name. If it fails, it removes what it has
// created, unless Options.Retain is set.
func AddNode(ctx context.Context, options Options, spec topology.Spec, emit func(session.Event)) (name string, err error) {
	err = onNodes(ctx, options, emit, func(c change) error {
		n, err := c.newcomer(ctx, spec)
		if err != nil {
			return err
		}
		name = n.Name
		c.nodes = c.with(n)
		join, err := c.joining(ctx)
		if err != nil {
			return err
		}
		if err = c.session.Run(ctx, c.addPlan(n, join)); err == nil {
			return nil
		}
		join.revoke(ctx)
		if c.options.Retain {
			return err
		}
		return errors.Join(err, c.takeBack(ctx, n))
	})
	return name, err
}

// with returns the topology of the cluster with one more node.
func (c change) with(n topology.Node) topology.Topology {
	request := c.options.Request
	request.Nodes = []topology.Spec{n.Spec}
	return request.Topology(c.session.Name, c.state)
}

// newcomer returns the node that is to join. A node that a killed run did not
// finish is finished, even if the API server has it.
func (c change) newcomer(ctx context.Context, spec topology.Spec) (topology.Node, error) {
	joined, err := apiserver.NodeNames(ctx, c.session)
	if err != nil {
		return topology.Node{}, err
	}
	if begun, ok := c.state.Node(c.session.Name + "-" + spec.Name); ok && !complete(ctx, c.session, begun) {
		joined = slices.DeleteFunc(joined, func(name string) bool { return name == begun.Name })
	}
	spec.Name = nextName(c.session.Name, spec, joined)
	nodes := c.with(topology.Node{Spec: spec})
	n := nodes.Node(spec.HostName(c.session.Name))
	if err := canJoin(nodes, n, joined); err != nil || c.state.Has(n.Name) {
		return n, err
	}
	return n, errors.Join(preflight.Balanced(nodes, c.options.Balanced), preflight.NewNode(ctx, c.session, n))
}

// joining returns the join data of a running cluster.
func (c change) joining(ctx context.Context) (*joining, error) {
	master, err := c.session.RunningMaster(ctx, "")
	if err != nil {
		return nil, err
	}
	c.source.shared = c.options.Bundle != "" || c.session.Node(master.Name).Run(ctx, "test", "-e", testhost.SharedDir+"/"+bundleName) == nil
	c.state = topology.State{} // a node that a killed run did not finish counts as new
	return &joining{change: c, master: master.Node}, nil
}

func (c change) addPlan(n topology.Node, join *joining) step.Plan {
	facts := new(docker.EngineHost)
	m := c.machine(n)
	plan := step.Plan{
		{testhost.ImageStep(c.session, c.nodes.Variant(n)), m.RemoveOldVolume()},
		{testhost.EngineFacts(c.session, c.nodes, facts, preflight.DiskSpace)},
		{m.Boot(facts)},
		{remote.PutBinary(c.session, n.Name, c.options.Binary)},
	}
	if n.Role != topology.Master {
		return append(plan, []step.Step{join.step(n)})
	}
	return append(plan, []step.Step{join.openMasters()}, []step.Step{join.step(n)}, []step.Step{join.closeMasters()})
}

// complete reports whether a node lacks nothing. A node that is off was complete before.
func complete(ctx context.Context, s *session.Session, n topology.NodeState) bool {
	if !n.Running() {
		return true
	}
	var report struct{ UpToDate bool }
	return json.Unmarshal(remote.Status(ctx, s, n).Report, &report) == nil && report.UpToDate
}

// nextName returns the name of a node, by default its role with the next free number.
func nextName(cluster string, s topology.Spec, joined []string) string {
	for n := 1; s.Name == ""; n++ {
		name := fmt.Sprintf("%s-%d", s.Role, n)
		if !slices.Contains(joined, cluster+"-"+name) {
			s.Name = name
		}
	}
	return s.Name
}

// canJoin returns the problems of a node that is to join; t contains the node.
func canJoin(t topology.Topology, n topology.Node, joined []string) error {
	errs := []error{topology.BadName(n.Spec.Name)}
	if slices.Contains(joined, n.Name) {
		errs = append(errs, &step.Problem{Name: "node-exists", Text: "there is a node " + n.Name + " already",
			Remedy: "use another --name, or `kube-bootstrap node start " + n.Name + " --cluster " + t.Cluster() + "`"})
	}
	if n.Role == topology.Master && t.Masters() > topology.MaxMasters {
		errs = append(errs, &step.Problem{Name: "cluster-size", Text: fmt.Sprintf("cluster %s has %d control planes", t.Cluster(), topology.MaxMasters), Remedy: "add workers"})
	}
	if !topology.HasRoom(t.Subnet(), n.Addr) {
		errs = append(errs, &step.Problem{Name: "cluster-subnet", Text: fmt.Sprintf("%s has no address left", t.Subnet()), Remedy: "remove a node"})
	}
	return errors.Join(errs...)
}

// takeBack removes a node that could not join.
func (c change) takeBack(ctx context.Context, n topology.Node) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	return c.session.Run(ctx, step.Plan{{c.turndown(n)}, {c.object(ctx, n).Forget()}, {c.machine(n).Remove()}})
}
