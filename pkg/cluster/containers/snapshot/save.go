package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// First is the name of the snapshot that `cluster up` saves.
const First = "first"

// Save copies the disks of all hosts of a cluster to a snapshot. All hosts are
// paused at the same time while they are copied.
func Save(ctx context.Context, options session.Selection, name string, emit func(session.HostEvent)) error {
	scope := session.Requirements{Needs: session.ACluster, Lock: session.ClusterLock, Emit: emit}
	return containers.Do(ctx, options, scope, func(c containers.Cluster, _ topology.State) error {
		save := &saving{cluster: c, name: name, spare: spare}
		if err := save.check(ctx); err != nil {
			return err
		}
		return c.Session.Run(ctx, save.plan())
	})
}

// SaveFirst replaces the snapshot First. It saves none if the engine's disk is
// too full, because the cluster is up nevertheless. The caller has session.ClusterLock.
func SaveFirst(ctx context.Context, c containers.Cluster) error {
	if err := Drop(ctx, c, First); err != nil {
		return err
	}
	save := &saving{cluster: c, name: First, spare: spareFirst}
	err := save.check(ctx)
	if problems := step.Problems(err); len(problems) > 0 && problems[0].Name == "snapshot-space" {
		step.Report(ctx, "left out: "+problems[0].Text, 0, 0)
		return c.Session.Notes().Forget(ctx, session.FirstNote)
	}
	if err != nil {
		return err
	}
	for _, one := range save.plan().Steps() {
		if err := one.Apply(ctx); err != nil {
			return err
		}
	}
	return nil
}

type saving struct {
	cluster containers.Cluster
	name    string
	hosts   []machines.Inspected
	bytes   int64
	spare   int64
}

// check returns the problems of the name and of the disk space.
func (s *saving) check(ctx context.Context) error {
	if !topology.ValidName(s.name) {
		return &step.Problem{
			Name: "snapshot-name", Text: fmt.Sprintf("%q cannot be the name of a snapshot", s.name),
			Remedy: topology.NameRemedy,
		}
	}
	all, err := contentsOf(ctx, s.cluster.Session)
	if err != nil {
		return err
	}
	if _, taken := all[s.name]; taken {
		cluster := s.cluster.Name
		return &step.Problem{Name: "snapshot-exists",
			Text: "cluster " + cluster + " has a snapshot " + s.name + " already",
			Remedy: "use another name, or run `kube-bootstrap cluster snapshot remove " + s.name + " --name " +
				cluster + "` first"}
	}
	restoring, err := s.cluster.Session.Restoring(ctx)
	if err != nil {
		return err
	}
	if restoring != "" { // hosts may be missing
		return s.cluster.Session.RestoreUnfinished(restoring)
	}
	if s.hosts, err = testhost.Existing(ctx, s.cluster); err != nil {
		return err
	}
	if len(s.hosts) == 0 {
		return s.cluster.Session.NoNodes(ctx)
	}
	return s.checkSpace(ctx)
}

// Bytes that stay free on the engine's disk, more of them if the user requested no snapshot.
const (
	spare      = 2 << 30
	spareFirst = 4 << 30
)

// checkSpace compares the size of the copies with the free space. Hosts on a
// full disk would lose more than a snapshot.
func (s *saving) checkSpace(ctx context.Context) error {
	var volumes []string
	for _, h := range s.hosts {
		s.bytes += h.Bytes
		volumes = append(volumes, testhost.UnsharedVolumes(h.Definition)...)
	}
	used, free, err := s.cluster.Volumes.Measure(ctx, s.hosts[0].ImageID, volumes)
	if err != nil {
		return err
	}
	s.bytes += used
	if free < s.bytes+s.spare {
		return &step.Problem{Name: "snapshot-space",
			Text: fmt.Sprintf("a snapshot of cluster %s takes %d MB, the engine's disk has %d MB free",
				s.cluster.Name, s.bytes/1e6, free/1e6),
			Remedy: "free some, or remove a snapshot"}
	}
	return nil
}

func (s *saving) plan() step.Plan {
	return step.Plan{
		{step.Always("remove-leftovers", "remove what a killed run left", func(ctx context.Context) error {
			return sweep(ctx, s.cluster)
		})},
		{step.Always("copy-hosts", fmt.Sprintf("copy %d hosts as they stand, %d MB", len(s.hosts), s.bytes/1e6),
			s.copyHosts)},
		{step.Always("keep-snapshot", "keep snapshot "+s.name, s.writeNote)},
	}
}

func (s *saving) copyHosts(ctx context.Context) error {
	var running []string
	for _, h := range s.hosts {
		if h.Running {
			running = append(running, h.Name)
		}
	}
	err := s.cluster.Machines.WhilePaused(ctx, running, func() error {
		return host.Together(s.hosts, func(h machines.Inspected) error { return s.copyHost(ctx, h) })
	})
	if err == nil {
		return nil
	}
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	return errors.Join(err, sweep(ctx, s.cluster))
}

func (s *saving) copyHost(ctx context.Context, h machines.Inspected) error {
	for _, volume := range testhost.UnsharedVolumes(h.Definition) {
		kept := copyOf(volume, s.name)
		if err := s.cluster.Volumes.Make(ctx, kept, map[string]string{label: s.name}); err != nil {
			return err
		}
		if err := testhost.CopyDisk(ctx, s.cluster, h.ImageID, volume, kept); err != nil {
			return err
		}
	}
	return s.cluster.Machines.Commit(ctx, h.Name, rootOf(h.Name, s.name))
}

// writeNote writes the note that makes the copies a snapshot.
func (s *saving) writeNote(ctx context.Context) error {
	now, err := s.cluster.Session.UpRecord(ctx)
	if err != nil {
		return err
	}
	subnet, err := s.cluster.Subnet(ctx)
	if err != nil {
		return err
	}
	loadBalancer, _, err := s.cluster.Attached(ctx, containers.LoadBalancerName(s.cluster.Name))
	if err != nil {
		return err
	}
	notes, err := s.cluster.Session.Notes().All(ctx)
	if err != nil {
		return err
	}
	c := contents{
		Format: format, Settings: now, Components: notes[session.ComponentsNote], Subnet: subnet,
		Ports: loadBalancer.Ports,
		Snapshot: Snapshot{
			Name: s.name, Made: time.Now().UTC().Truncate(time.Second), Kubernetes: now.Version(), Bytes: s.bytes,
		},
	}
	for _, h := range s.hosts {
		c.Machines = append(c.Machines, h.Definition)
		c.Snapshot.Hosts = append(c.Snapshot.Hosts, h.Name)
	}
	word, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := s.cluster.Session.Notes().Set(ctx, noteKey+s.name, string(word)); err != nil || s.name != First {
		return err
	}
	return s.cluster.Session.Notes().Forget(ctx, session.FirstNote)
}
