// Package snapshot saves, restores, lists and removes snapshots of a cluster.
//
// A snapshot consists of a copy of the volumes and an image of the root file
// system of every host, and of a note, which is written last. Parts without a
// note belong to a run that was killed.
package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Snapshot is a copy of the disks of all hosts of a cluster at one moment.
type Snapshot struct {
	Name       string    `json:"name"`
	Made       time.Time `json:"made"`
	Kubernetes string    `json:"kubernetes,omitempty"` // version
	Hosts      []string  `json:"hosts"`
	Bytes      int64     `json:"bytes"` // upper limit of its size on the engine's disk
}

// contents is the note of a snapshot.
type contents struct {
	Format     int                   `json:"format"`
	Snapshot   Snapshot              `json:"snapshot"`
	Settings   *session.Record       `json:"settings,omitempty"`   // nil if the cluster was not finished
	Components string                `json:"components,omitempty"` // the session.ComponentsNote
	Subnet     netip.Prefix          `json:"subnet"`
	Ports      map[uint16]uint16     `json:"ports,omitempty"` // published ports of the load balancer
	Machines   []machines.Definition `json:"machines"`
}

const (
	format      = 1
	noteKey     = "snapshot." // of its note, followed by its name
	label       = "kube-bootstrap.dev/snapshot"
	imagePrefix = "kube-bootstrap/snapshot:"
)

func copyOf(volume, snapshot string) string { return volume + ".snapshot." + snapshot }

// rootOf returns the name of the image of a host's root file system in a snapshot.
func rootOf(host, snapshot string) string { return imagePrefix + host + "." + snapshot }

// List returns the snapshots of a cluster, oldest first.
func List(ctx context.Context, options session.Selection) ([]Snapshot, error) {
	return session.Get(ctx, options, session.Requirements{Needs: session.ACluster},
		func(s *session.Session, _ topology.State) (all []Snapshot, err error) {
			kept, err := contentsOf(ctx, s)
			for _, c := range kept {
				all = append(all, c.Snapshot)
			}
			slices.SortFunc(all, func(a, b Snapshot) int { return a.Made.Compare(b.Made) })
			return all, err
		})
}

// Names returns the names of the snapshots in alphabetical order.
func Names(ctx context.Context, s *session.Session) ([]string, error) {
	all, err := contentsOf(ctx, s)
	return slices.Sorted(maps.Keys(all)), err
}

// Settings returns the record of the cluster in a snapshot; nil if it was not finished.
func Settings(ctx context.Context, s *session.Session, name string) (*session.Record, error) {
	all, err := contentsOf(ctx, s)
	return all[name].Settings, err
}

// Components returns the session.ComponentsNote of each snapshot that has one.
func Components(ctx context.Context, s *session.Session) (notes []string, err error) {
	all, err := contentsOf(ctx, s)
	for _, c := range all {
		if c.Components != "" {
			notes = append(notes, c.Components)
		}
	}
	return notes, err
}

// Remove removes a snapshot, and the parts of incomplete snapshots.
func Remove(ctx context.Context, options session.Selection, name string) error {
	scope := session.Requirements{Needs: session.ACluster, Lock: session.ClusterLock}
	return containers.Do(ctx, options, scope, func(c containers.Cluster, _ topology.State) error {
		all, err := contentsOf(ctx, c.Session)
		if err != nil {
			return err
		}
		if _, ok := all[name]; !ok {
			return errors.Join(missing(c.Name, name, all), sweep(ctx, c))
		}
		restoring, err := c.Session.Restoring(ctx)
		if err != nil {
			return err
		}
		if restoring == name { // `cluster up` could not finish without it
			return c.Session.RestoreUnfinished(name)
		}
		return Drop(ctx, c, name)
	})
}

// Drop removes a snapshot if it exists, its note first: parts without a note are no snapshot.
// The caller has session.ClusterLock.
func Drop(ctx context.Context, c containers.Cluster, name string) error {
	if err := c.Session.Notes().Forget(ctx, noteKey+name); err != nil {
		return err
	}
	return sweep(ctx, c)
}

// ForgetAll removes the notes of all snapshots, before their parts are removed with the cluster.
func ForgetAll(ctx context.Context, s *session.Session) error {
	notes, err := s.Notes().All(ctx)
	errs := []error{err}
	for key := range notes {
		if strings.HasPrefix(key, noteKey) {
			errs = append(errs, s.Notes().Forget(ctx, key))
		}
	}
	return errors.Join(errs...)
}

// RemoveHosts removes all hosts and the network of a cluster, but not its snapshots.
func RemoveHosts(ctx context.Context, c containers.Cluster) error {
	return testhost.RemoveAll(ctx, c, func(v machines.Volume) bool { return v.Labels[label] != "" })
}

func contentsOf(ctx context.Context, s *session.Session) (map[string]contents, error) {
	notes, err := s.Notes().All(ctx)
	if err != nil {
		return nil, s.Provider.NoAnswer(err)
	}
	all := map[string]contents{}
	for key, word := range notes {
		name, ok := strings.CutPrefix(key, noteKey)
		if !ok {
			continue
		}
		var c contents
		if err := json.Unmarshal([]byte(word), &c); err != nil {
			return nil, fmt.Errorf("snapshot %s of cluster %s: %w", name, s.Name, err)
		}
		all[name] = c
	}
	return all, nil
}

// sweep removes the parts of incomplete snapshots, of runs that were killed.
func sweep(ctx context.Context, c containers.Cluster) error {
	whole, err := contentsOf(ctx, c.Session)
	if err != nil {
		return err
	}
	volumes, err := c.Volumes.List(ctx)
	errs := []error{err, c.RemoveHelpers(ctx)}
	for _, v := range volumes {
		of := v.Labels[label]
		if _, kept := whole[of]; of != "" && !kept {
			errs = append(errs, c.Volumes.Remove(ctx, v.Name))
		}
	}
	images, err := c.Images(ctx)
	errs = append(errs, err)
	for _, ref := range images {
		_, of, _ := strings.Cut(strings.TrimPrefix(ref, imagePrefix), ".")
		if _, kept := whole[of]; strings.HasPrefix(ref, imagePrefix) && !kept {
			errs = append(errs, c.Engine.Images().RemoveUnused(ctx, ref))
		}
	}
	return errors.Join(errs...)
}

func contentsNamed(ctx context.Context, s *session.Session, name string) (contents, error) {
	all, err := contentsOf(ctx, s)
	c, ok := all[name]
	if err == nil && !ok {
		err = missing(s.Name, name, all)
	}
	return c, err
}

func missing(cluster, name string, all map[string]contents) error {
	remedy := "save one with `kube-bootstrap cluster snapshot save " + name + " --name " + cluster + "`"
	if len(all) > 0 {
		remedy = "use one of " + strings.Join(slices.Sorted(maps.Keys(all)), ", ")
	}
	return &step.Problem{
		Name: "snapshot-missing", Text: "cluster " + cluster + " has no snapshot " + name, Remedy: remedy,
	}
}

// Losses describes the snapshots for which goes returns true as losses.
func Losses(ctx context.Context, s *session.Session, goes func(snapshot string) bool) ([]string, error) {
	all, err := contentsOf(ctx, s)
	var losses []string
	for name, c := range all {
		if goes(name) {
			losses = append(losses, c.Snapshot.loss())
		}
	}
	slices.Sort(losses)
	return losses, err
}

func (s Snapshot) loss() string { return "snapshot " + s.Name + " of " + s.Made.Format(time.DateTime) }

// RemoveLosses lists what Remove removes for good.
func RemoveLosses(ctx context.Context, options session.Selection, name string) ([]string, error) {
	return lossesOf(ctx, options, name, func(s Snapshot, _ topology.State) []string { return []string{s.loss()} })
}

// RestoreLosses lists what Restore removes for good: the present state of all hosts.
func RestoreLosses(ctx context.Context, options session.Selection, name string) ([]string, error) {
	return lossesOf(ctx, options, name, func(s Snapshot, state topology.State) (losses []string) {
		for _, host := range state.Names() {
			losses = append(losses, "what changed on host "+host+" since "+s.Made.Format(time.DateTime))
		}
		return losses
	})
}

func lossesOf(
	ctx context.Context, options session.Selection, name string, losses func(Snapshot, topology.State) []string,
) ([]string, error) {
	return session.Get(ctx, options, session.Requirements{Needs: session.ACluster},
		func(s *session.Session, state topology.State) ([]string, error) {
			c, err := contentsNamed(ctx, s, name)
			if err != nil {
				return nil, err
			}
			return losses(c.Snapshot, state), nil
		})
}
