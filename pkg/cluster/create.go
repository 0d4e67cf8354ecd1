package cluster

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/joining"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// creation creates a cluster on its hosts, or completes it.
type creation struct {
	change change
	join   *joining.Joining
	first  topology.ClusterNode // the first control plane
	setup  testhost.Setup
	isNew  bool                   // the cluster was never up
	copies []topology.ClusterNode // the new hosts that get a copy of a disk with the images
	opened chan struct{}          // closed once hosts can join master
	open   func()                 // closes opened
}

func newCreation(
	ctx context.Context, ch change, j *joining.Joining, setup testhost.Setup, isNew bool,
) (c creation, err error) {
	opened := make(chan struct{})
	c = creation{
		change: ch, join: j, first: j.First, setup: setup, isNew: isNew,
		opened: opened, open: sync.OnceFunc(func() { close(opened) }),
	}
	if isNew {
		c.setup.Disk, err = c.change.preparedDisk(ctx, c.first)
		c.copies = c.likeFirst()
	}
	return c, err
}

// plan returns the plan that creates the cluster. All hosts but the copies run.
//
//	with a prepared disk: copy it -> boot the copies -> run master -> join
//	with other copies:    load into the first control plane -> copy its disk -> boot the copies, run master -> join
//	without copies:       load into the others, run master -> join
//
// In a new cluster, workers join while master still waits for the pods of the cluster. Otherwise
// they wait until it has returned, because a worker must not be newer than the control plane.
func (c creation) plan() step.Plan {
	controlPlanes, workers := c.joins()
	first := append(c.prepare(), c.firstControlPlane())
	if c.isNew && len(workers) > 0 {
		first = append(first, c.awaitOpen())
		for _, worker := range workers {
			first = append(first, worker.Needing(awaitOpenID))
		}
		workers = nil
	}
	several := len(controlPlanes) > 0
	return step.Plan{
		c.putBinaries(),
		{c.preload(c.first).If(c.makesDisk())},
		{c.copyDisk(), c.setup.LoadBalancer()},
		first,
		{c.join.OpenControlPlanes().If(several)},
		slices.Concat(controlPlanes, workers),
		{c.join.CloseControlPlanes().If(several)},
		{c.join.Adapt().If(len(c.change.nodes.Nodes()) > 1)},
	}
}

// joins returns the steps of the further control planes and of the workers. A worker waits for its
// own host, in the stage of the first control plane also for that.
func (c creation) joins() (controlPlanes, workers []step.Step) {
	for _, n := range c.change.nodes.Nodes() {
		switch {
		case n.Name == c.first.Name:
		case n.Role == topology.ControlPlane:
			controlPlanes = append(controlPlanes, c.join.Step(n))
		default:
			workers = append(workers, c.join.Step(n).Needing(c.hostIDs(n)...))
		}
	}
	return controlPlanes, workers
}

// hostIDs returns the IDs of the steps of prepare that a command on the host of a node needs.
func (c creation) hostIDs(n topology.ClusterNode) []step.ID {
	switch {
	case slices.ContainsFunc(c.copies, func(copied topology.ClusterNode) bool { return copied.Name == n.Name }):
		return []step.ID{testhost.BootID(n.Name)}
	case n.Name != c.first.Name:
		return []step.ID{preloadID(n)}
	}
	return nil
}

const (
	// LetsJoin identifies the step of `kube-bootstrap master` after which hosts can join.
	LetsJoin step.ID = "let-hosts-join"

	awaitOpenID step.ID = "await-open"
)

func (c creation) awaitOpen() step.Step {
	return step.Always(awaitOpenID, "wait until "+c.first.Name+" lets hosts join", func(ctx context.Context) error {
		select {
		case <-c.opened:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func (c creation) runFirst(ctx context.Context, n topology.ClusterNode) error {
	args := append([]string{"master"}, c.change.source.args()...)
	if c.change.nodes.OnlyControlPlanes() {
		args = append(args, "--no-dedicated")
	}
	watched := *c.change.cluster.Session
	watched.Emit = func(e session.HostEvent) {
		c.change.cluster.Session.Emit(e)
		if e.ID == LetsJoin && (e.Kind == step.Done || e.Kind == step.UpToDate) {
			c.open()
		}
	}
	defer c.open()
	return remote.Run(ctx, &watched, n.Name, slices.Concat(args, c.change.options.MasterArgs, n.Spec.Args), nil)
}

// firstControlPlane returns the step that runs `kube-bootstrap master` on the first control plane.
func (c creation) firstControlPlane() step.Step {
	s := joining.RoleStep(c.first, c.runFirst).Needing(c.hostIDs(c.first)...)
	for _, put := range c.putManifests() {
		s = s.Needing(put.ID)
	}
	return s
}

func (c creation) putBinaries() (files []step.Step) {
	for _, n := range c.others() {
		files = append(files, remote.PutBinary(c.change.cluster.Session, n.Name, c.change.options.Binary))
	}
	return files
}

func (c creation) putManifests() (files []step.Step) {
	for _, m := range c.change.options.Manifests {
		name := "put " + filepath.Base(m.Path) + " on " + c.first.Name
		put := remote.Put(c.change.cluster.Session, step.IDOf("put", m.On), name, c.first.Name,
			remote.FileCopy{From: m.Path, To: m.On, Mode: 0o600})
		files = append(files, put.Needing(c.hostIDs(c.first)...))
	}
	return files
}

// makesDisk reports whether the disk of the first control plane is copied.
func (c creation) makesDisk() bool {
	return c.setup.Disk.Volume == "" && c.change.source.shared && !c.change.state.Has(c.first.Name) &&
		(len(c.copies) > 0 || c.setup.Disk.Key != "")
}

func (c creation) copyDisk() step.Step {
	var machines []testhost.Machine
	for _, n := range c.copies {
		machines = append(machines, c.change.machine(n))
	}
	if c.setup.Disk.Volume != "" {
		return c.setup.Disk.CopyTo(machines)
	}
	return c.change.machine(c.first).CopyTo(machines, c.setup).If(c.makesDisk())
}

// prepare returns the steps for the other hosts while the first control plane starts.
func (c creation) prepare() (steps []step.Step) {
	for _, n := range c.others() {
		if n.Name != c.first.Name {
			steps = append(steps, c.preload(n))
		}
	}
	for _, n := range c.copies {
		steps = append(steps, c.setup.Boot(n))
	}
	return append(steps, c.putManifests()...)
}

// likeFirst returns the new hosts that get a copy of the prepared disk. Without a prepared disk,
// they get a copy of the disk of the first control plane, which must then be new too: the disk of
// a node contains its keys.
func (c creation) likeFirst() []topology.ClusterNode {
	if !c.change.source.shared || c.setup.Disk.Volume == "" && c.change.state.Has(c.first.Name) {
		return nil
	}
	return slices.DeleteFunc(c.change.nodes.Missing(c.change.state), func(n topology.ClusterNode) bool {
		return c.change.nodes.Variant(n) != c.change.nodes.Variant(c.first) ||
			c.setup.Disk.Volume == "" && n.Name == c.first.Name
	})
}

// others returns the nodes whose disks are no copies.
func (c creation) others() []topology.ClusterNode {
	return slices.DeleteFunc(c.change.nodes.Nodes(), func(n topology.ClusterNode) bool {
		return slices.ContainsFunc(c.copies, func(copied topology.ClusterNode) bool { return copied.Name == n.Name })
	})
}

func preloadID(n topology.ClusterNode) step.ID { return step.IDOf("load-images", n.Name) }

// preload returns the step that loads images into a new host. An existing host may be a node
// already, and loads what it lacks when it joins.
func (c creation) preload(n topology.ClusterNode) step.Step {
	args := slices.Concat([]string{"offline", "bootstrap"}, c.change.source.args(), c.change.options.LoadArgs)
	load := func(ctx context.Context) error { return remote.Run(ctx, c.change.cluster.Session, n.Name, args, nil) }
	return step.Always(preloadID(n), "load images into "+n.Name, load).If(c.change.source.shared &&
		!c.change.state.Has(n.Name))
}
