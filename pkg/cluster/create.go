package cluster

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// creation creates a cluster on its hosts, or completes it.
type creation struct {
	*joining
	setup  testhost.Setup
	isNew  bool            // the cluster was never up
	copies []topology.Node // the new hosts that get a copy of a disk with the images
	opened chan struct{}   // closed once hosts can join master
	open   func()          // closes opened
}

func newCreation(ctx context.Context, j *joining, setup testhost.Setup, isNew bool) (c creation, err error) {
	opened := make(chan struct{})
	c = creation{joining: j, setup: setup, isNew: isNew, opened: opened, open: sync.OnceFunc(func() { close(opened) })}
	if isNew {
		c.setup.Disk, err = j.preparedDisk(ctx, j.master)
		c.copies = c.likeMaster()
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
	masters, workers := c.joins()
	first := append(c.prepare(), c.runMaster())
	if c.isNew && len(workers) > 0 {
		first, workers = slices.Concat(first, []step.Step{c.awaitOpen()}, workers), nil
	}
	several := len(masters) > 0
	return step.Plan{
		c.putBinaries(),
		{c.preload(c.master).If(c.makesDisk())},
		{c.copyDisk(), c.setup.Front()},
		first,
		{c.openMasters().If(several)},
		slices.Concat(masters, workers),
		{c.closeMasters().If(several)},
		{c.adapt().If(len(c.nodes.Nodes()) > 1)},
	}.Compact()
}

// joins returns the steps of the further control planes and of the workers. In the stage of the
// first control plane, a worker waits for its own host and for the first control plane.
func (c creation) joins() (masters, workers []step.Step) {
	for _, n := range c.nodes.Nodes() {
		switch {
		case n.Name == c.master.Name:
		case n.Role == topology.Master:
			masters = append(masters, c.step(n))
		default:
			workers = append(workers, c.step(n).After(c.awaitOpen(), c.setup.Boot(n), c.preload(n)))
		}
	}
	return masters, workers
}

// LetsJoin is the step of `kube-bootstrap master` after which hosts can join.
const LetsJoin = "let hosts join"

func (c creation) awaitOpen() step.Step {
	return step.Always("wait until "+c.master.Name+" lets hosts join", func(ctx context.Context) error {
		select {
		case <-c.opened:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func (c creation) firstMaster(ctx context.Context, n topology.Node) error {
	args := append([]string{"master"}, c.source.args()...)
	if c.nodes.OnlyMasters() {
		args = append(args, "--no-dedicated")
	}
	watched := *c.session
	watched.Emit = func(e session.Event) {
		c.session.Emit(e)
		if e.Step == LetsJoin && (e.Kind == step.Done || e.Kind == step.UpToDate) {
			c.open()
		}
	}
	defer c.open()
	return remote.Run(ctx, &watched, n.Name, slices.Concat(args, c.options.MasterArgs, n.Spec.Args), nil)
}

// runMaster returns the step that runs `kube-bootstrap master` on the first control plane.
func (c creation) runMaster() step.Step {
	return roleStep(c.master, c.firstMaster).After(append(c.putManifests(), c.setup.Boot(c.master))...)
}

func (c creation) putBinaries() (files []step.Step) {
	for _, n := range c.others() {
		files = append(files, remote.PutBinary(c.session, n.Name, c.options.Binary))
	}
	return files
}

func (c creation) putManifests() (files []step.Step) {
	for _, m := range c.options.Manifests {
		name := "put " + filepath.Base(m.Path) + " on " + c.master.Name
		put := remote.Put(c.session, name, c.master.Name, remote.File{From: m.Path, To: m.On, Mode: 0o600})
		files = append(files, put.After(c.setup.Boot(c.master)))
	}
	return files
}

// makesDisk reports whether the disk of the first control plane is copied.
func (c creation) makesDisk() bool {
	return c.setup.Disk.Volume == "" && c.source.shared && !c.state.Has(c.master.Name) && (len(c.copies) > 0 || c.setup.Disk.Key != "")
}

func (c creation) copyDisk() step.Step {
	var machines []testhost.Machine
	for _, n := range c.copies {
		machines = append(machines, c.machine(n))
	}
	if c.setup.Disk.Volume != "" {
		return c.setup.Disk.CopyTo(machines)
	}
	return c.machine(c.master).CopyTo(machines, c.setup).If(c.makesDisk())
}

// prepare returns the steps for the other hosts while the first control plane starts.
func (c creation) prepare() (steps []step.Step) {
	for _, n := range c.others() {
		if n.Name != c.master.Name {
			steps = append(steps, c.preload(n))
		}
	}
	for _, n := range c.copies {
		steps = append(steps, c.setup.Boot(n))
	}
	return append(steps, c.putManifests()...)
}

// likeMaster returns the new hosts that get a copy of the prepared disk. Without a prepared disk,
// they get a copy of the disk of the first control plane, which must then be new too: the disk of
// a node contains its keys.
func (c creation) likeMaster() []topology.Node {
	if !c.source.shared || c.setup.Disk.Volume == "" && c.state.Has(c.master.Name) {
		return nil
	}
	return slices.DeleteFunc(c.nodes.Missing(c.state), func(n topology.Node) bool {
		return c.nodes.Variant(n) != c.nodes.Variant(c.master) || c.setup.Disk.Volume == "" && n.Name == c.master.Name
	})
}

// others returns the nodes whose disks are no copies.
func (c creation) others() []topology.Node {
	return slices.DeleteFunc(c.nodes.Nodes(), func(n topology.Node) bool {
		return slices.ContainsFunc(c.copies, func(copied topology.Node) bool { return copied.Name == n.Name })
	})
}

// preload returns the step that loads images into a new host. An existing host may be a node
// already, and loads what it lacks when it joins.
func (c creation) preload(n topology.Node) step.Step {
	args := slices.Concat([]string{"offline", "bootstrap"}, c.source.args(), c.options.LoadArgs)
	load := func(ctx context.Context) error { return remote.Run(ctx, c.session, n.Name, args, nil) }
	return step.Always("load images into "+n.Name, load).If(c.source.shared && !c.state.Has(n.Name))
}
