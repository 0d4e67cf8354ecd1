package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Record holds the settings that a cluster was created with. It is stored on
// the engine once the cluster is up. A value that the record does not have
// counts as equal to any other.
type Record struct {
	Format     int         `json:"format"`
	Kubernetes string      `json:"kubernetes,omitempty"` // version; "": the cluster has never been up
	Program    string      `json:"program,omitempty"`    // checksum of kube-bootstrap on the hosts
	Settings   config.Made `json:"settings"`
	HostImage  string      `json:"hostImage,omitempty"`
	APIPort    int         `json:"apiPort,omitempty"`
	Nodes      []Spec      `json:"nodes,omitempty"` // without nodes added by `node add`
	Phase      Phase       `json:"phase,omitempty"`
	Bundle     string      `json:"-"` // path of the bundle that the hosts load, if this machine has it
}

// Phase states that a run removes all hosts of the cluster or creates them
// again. The next `cluster up` continues such a run if it was killed.
type Phase string

// Phases of a record. A record without one is that of a cluster that is up.
const (
	Removing Phase = "removing" // hosts of the former cluster may exist; the cluster with this record comes after it
	Creating Phase = "creating" // all hosts belong to the cluster with this record
)

const (
	recordFormat = 1
	recordKey    = "settings" // name of the note that holds the record
)

// record returns the record of a cluster with these options.
func (o Options) record() (Record, error) {
	program, err := sumOf(o.Binary)
	return Record{
		Format: recordFormat, Kubernetes: o.Kubernetes, Program: program, Settings: o.Made,
		HostImage: o.HostImage, APIPort: o.APIPort, Nodes: o.specs(),
	}, err
}

// Recorded returns the settings that a cluster was created with. For a cluster
// that is not finished it returns the known part, and nil if no cluster exists.
func Recorded(ctx context.Context, options Options) (r *Record, err error) {
	err = withFleet(ctx, options, func(f *fleet) error {
		r, err = f.recorded(ctx)
		return err
	})
	return r, err
}

func (f *fleet) recorded(ctx context.Context) (*Record, error) {
	r, err := f.written(ctx)
	if err != nil || r.removing() {
		return r, err
	}
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil {
		return nil, err
	}
	if name := notes[restoringKey]; name != "" { // the restore will go on, so the snapshot's settings apply
		all, err := f.snapshots(ctx)
		if err != nil {
			return nil, err
		}
		r = all[name].Settings
	}
	if r == nil {
		return f.unfinished(ctx)
	}
	if path := filepath.Join(f.sharedDir(), bundleName); fileThere(path) {
		r.Bundle = path
	}
	return r, nil
}

// unfinished returns the record of a cluster that has never been up: only the
// subnet of its network is known.
func (f *fleet) unfinished(ctx context.Context) (*Record, error) {
	networks, err := f.docker.Networks(ctx)
	for _, n := range networks {
		if n.Name == f.Name && n.Fleet == f.Name && len(n.Subnets) > 0 {
			return &Record{Settings: config.Made{Given: map[string]string{"dindSubnet": n.Subnets[0].String()}}}, err
		}
	}
	return nil, err
}

// noted reads the record of the cluster; nil if the cluster has never been up.
func (f *fleet) noted(ctx context.Context) (*Record, error) {
	r, err := f.written(ctx)
	if r != nil && r.Phase != "" {
		r = nil
	}
	return r, err
}

func (r *Record) removing() bool { return r != nil && r.Phase == Removing }

// written reads the record in any phase; nil if there is none.
func (f *fleet) written(ctx context.Context) (*Record, error) {
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil {
		return nil, f.noAnswer(err)
	}
	if notes[recordKey] == "" {
		return nil, nil
	}
	return parseRecord(f.Name, notes[recordKey])
}

func parseRecord(name, word string) (*Record, error) {
	var r Record
	if err := json.Unmarshal([]byte(word), &r); err != nil {
		return nil, fmt.Errorf("settings of cluster %s: %w", name, err)
	}
	if r.Format > recordFormat {
		return nil, &step.Problem{Name: "cluster-version", Text: fmt.Sprintf("cluster %s has settings of format %d, this program knows %d", name, r.Format, recordFormat),
			Remedy: "use the kube-bootstrap that created it, or a newer one"}
	}
	return &r, nil
}

func (f *fleet) note(ctx context.Context, r *Record) error {
	word, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return f.docker.Note(ctx, f.Name, recordKey, string(word))
}

// asks reports whether now requests a setting that the cluster does not have.
func (r Record) asks(now Record) bool {
	return !r.Settings.Includes(now.Settings) || slices.ContainsFunc(now.Nodes, func(s Spec) bool {
		return !slices.ContainsFunc(r.Nodes, func(was Spec) bool { return reflect.DeepEqual(was, s) })
	})
}

// dropNode deletes a removed node from the record, so that Up does not create
// it again.
func (f *fleet) dropNode(ctx context.Context, name string) error {
	r, err := f.noted(ctx)
	if err != nil || r == nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(r.Nodes), func(s Spec) bool { return f.hostName(s) == name })
	if len(left) == len(r.Nodes) {
		return nil
	}
	r.Nodes = left
	return f.note(ctx, r)
}

// version returns the Kubernetes version; "" if it is not known.
func (r *Record) version() string {
	if r == nil {
		return ""
	}
	return r.Kubernetes
}
