package cluster

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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Snapshot is all that lay on the disks of a cluster's hosts at one moment.
type Snapshot struct {
	Name       string    `json:"name"`
	Made       time.Time `json:"made"`
	Kubernetes string    `json:"kubernetes,omitempty"` // version
	Hosts      []string  `json:"hosts"`
	Bytes      int64     `json:"bytes"` // what it takes on the engine's disk at most
}

// A snapshot is, for every host, a copy of its volumes and an image of its root
// file system; a note, written last, makes them a snapshot. What has no note
// is of a run that was killed.

// contents is the note of a snapshot.
type contents struct {
	Format   int               `json:"format"`
	Snapshot Snapshot          `json:"snapshot"`
	Settings *Record           `json:"settings,omitempty"` // nil if the cluster was not finished
	Subnet   netip.Prefix      `json:"subnet"`
	Ports    map[uint16]uint16 `json:"ports,omitempty"` // published ports of the front
	Machines []docker.MadeFrom `json:"machines"`
}

const (
	snapshotFormat = 1
	snapshotKey    = "snapshot." // of its note; its name follows
	snapshotLabel  = "kube-bootstrap.dev/snapshot"
	imagePrefix    = "kube-bootstrap/snapshot:"
)

// copyOf is the volume of a snapshot that holds what was in volume.
func copyOf(volume, snapshot string) string { return volume + ".snapshot." + snapshot }

// rootOf is the image of a snapshot that holds the root file system of a host.
func rootOf(host, snapshot string) string { return imagePrefix + host + "." + snapshot }

// ownVolumes are those that only this host has.
func (f *fleet) ownVolumes(m docker.Machine) []string {
	var own []string
	for _, volume := range m.Volumes {
		if volume != f.sharedVolume() {
			own = append(own, volume)
		}
	}
	return own
}

// Snapshots lists the snapshots of a cluster, oldest first.
func Snapshots(ctx context.Context, options Options) ([]Snapshot, error) {
	var all []Snapshot
	err := withCluster(ctx, options, func(f *fleet) error {
		kept, err := f.snapshots(ctx)
		for _, c := range kept {
			all = append(all, c.Snapshot)
		}
		slices.SortFunc(all, func(a, b Snapshot) int { return a.Made.Compare(b.Made) })
		return err
	})
	return all, err
}

// RemoveSnapshot removes a snapshot, and what is left of one of that name.
func RemoveSnapshot(ctx context.Context, options Options, name string) error {
	return withCluster(ctx, options, func(f *fleet) error {
		all, err := f.snapshots(ctx)
		if err != nil {
			return err
		}
		if _, ok := all[name]; !ok {
			return errors.Join(f.noSnapshot(name, all), f.sweep(ctx))
		}
		return f.dropSnapshot(ctx, name)
	})
}

// dropSnapshot takes the note away first: what is not whole is no snapshot.
func (f *fleet) dropSnapshot(ctx context.Context, name string) error {
	if err := f.docker.Forget(ctx, f.Name, snapshotKey+name); err != nil {
		return err
	}
	return f.sweep(ctx)
}

func (f *fleet) snapshots(ctx context.Context) (map[string]contents, error) {
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil {
		return nil, f.noAnswer(err)
	}
	all := map[string]contents{}
	for key, word := range notes {
		name, ok := strings.CutPrefix(key, snapshotKey)
		if !ok {
			continue
		}
		var c contents
		if err := json.Unmarshal([]byte(word), &c); err != nil {
			return nil, fmt.Errorf("snapshot %s of cluster %s: %w", name, f.Name, err)
		}
		all[name] = c
	}
	return all, nil
}

// sweep removes the parts of snapshots that are none: of runs that were killed.
func (f *fleet) sweep(ctx context.Context) error {
	whole, err := f.snapshots(ctx)
	if err != nil {
		return err
	}
	volumes, err := f.docker.Volumes(ctx, f.Name)
	errs := []error{err, f.docker.RemoveHelpers(ctx, f.Name)}
	for _, v := range volumes {
		of := v.Labels[snapshotLabel]
		if _, kept := whole[of]; of != "" && !kept {
			errs = append(errs, f.docker.RemoveVolume(ctx, v.Name))
		}
	}
	images, err := f.docker.Images(ctx, f.Name)
	errs = append(errs, err)
	for _, ref := range images {
		_, of, _ := strings.Cut(strings.TrimPrefix(ref, imagePrefix), ".")
		if _, kept := whole[of]; strings.HasPrefix(ref, imagePrefix) && !kept {
			errs = append(errs, f.docker.RemoveImage(ctx, ref))
		}
	}
	return errors.Join(errs...)
}

func (f *fleet) noSnapshot(name string, all map[string]contents) error {
	remedy := "save one with `kube-bootstrap cluster snapshot save " + name + " --name " + f.Name + "`"
	if len(all) > 0 {
		remedy = "use one of " + strings.Join(slices.Sorted(maps.Keys(all)), ", ")
	}
	return &step.Problem{Name: "snapshot-missing", Text: "cluster " + f.Name + " has no snapshot " + name, Remedy: remedy}
}
