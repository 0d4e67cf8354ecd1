package session

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Record holds the settings that a cluster was created with. It is a note that
// is written once the cluster is up. A value that the record does not have
// counts as equal to any other.
type Record struct {
	Format     int                  `json:"format"`
	Kubernetes string               `json:"kubernetes,omitempty"` // version; "": the cluster has never been up
	Program    string               `json:"program,omitempty"`    // checksum of kube-bootstrap on the hosts
	Settings   config.ClusterRecord `json:"settings"`
	HostImage  string               `json:"hostImage,omitempty"`
	APIPort    int                  `json:"apiPort,omitempty"`
	Nodes      []topology.Spec      `json:"nodes,omitempty"` // without nodes added by `node add`
	Phase      Transition           `json:"phase,omitempty"`
	Bundle     string               `json:"-"` // path of the bundle that the hosts load, if this machine has it
}

// Transition states that a run removes all hosts of the cluster or creates them
// again. The next `cluster up` continues such a run if it was killed.
type Transition string

// Phases of a record. A record without one is that of a cluster that is up.
const (
	// hosts of the former cluster may exist; the cluster with this record comes after it
	Removing Transition = "removing"
	Creating Transition = "creating" // all hosts belong to the cluster with this record
)

// RecordFormat is the format of the records that this program writes.
const RecordFormat = 1

// Keys of notes about a cluster.
const (
	RecordNote     = "settings"  // the Record
	ComponentsNote = "programs"  // versions of the components that were built from a checkout
	RestoringNote  = "restoring" // name of the snapshot that a run restores; the next run continues
	FirstNote      = "first"     // the cluster is up, and its first snapshot is not saved yet; the next run saves it
)

// Removing reports whether a run removes the hosts of the cluster.
func (r *Record) Removing() bool { return r != nil && r.Phase == Removing }

// Version returns the Kubernetes version; "" if it is not known.
func (r *Record) Version() string {
	if r == nil {
		return ""
	}
	return r.Kubernetes
}

// Asks reports whether now requests a setting that the cluster does not have.
func (r Record) Asks(now Record) bool {
	return !r.Settings.Includes(now.Settings) || slices.ContainsFunc(now.Nodes, func(s topology.Spec) bool {
		return !slices.ContainsFunc(r.Nodes, func(was topology.Spec) bool { return reflect.DeepEqual(was, s) })
	})
}

// Record reads the record in any phase; nil if there is none.
func (s *Session) Record(ctx context.Context) (*Record, error) {
	notes, err := s.Notes().All(ctx)
	if err != nil {
		return nil, s.Provider.NoAnswer(err)
	}
	if notes[RecordNote] == "" {
		return nil, nil
	}
	return ParseRecord(s.Name, notes[RecordNote])
}

// UpRecord reads the record of a cluster that has been up and is not being created again, or nil.
func (s *Session) UpRecord(ctx context.Context) (*Record, error) {
	r, err := s.Record(ctx)
	if r != nil && r.Phase != "" {
		r = nil
	}
	return r, err
}

// Restoring returns the name of the snapshot that a run restores, perhaps a killed one; "" for none.
func (s *Session) Restoring(ctx context.Context) (snapshot string, err error) {
	notes, err := s.Notes().All(ctx)
	if err != nil {
		return "", s.Provider.NoAnswer(err)
	}
	return notes[RestoringNote], nil
}

// ParseRecord reads a record of the cluster with this name.
func ParseRecord(cluster, text string) (*Record, error) {
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("settings of cluster %s: %w", cluster, err)
	}
	if r.Format > RecordFormat {
		return nil, &step.Problem{Name: "cluster-version",
			Text: fmt.Sprintf("cluster %s has settings of format %d, this program knows %d",
				cluster, r.Format, RecordFormat),
			Remedy: "use the kube-bootstrap that created it, or a newer one"}
	}
	return &r, nil
}

// WriteRecord stores the record; nil deletes it.
func (s *Session) WriteRecord(ctx context.Context, r *Record) error {
	if r == nil {
		return s.Notes().Forget(ctx, RecordNote)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.Notes().Set(ctx, RecordNote, string(text))
}

// DropNode deletes a removed node from the record, so that `cluster up` does not create it again.
func (s *Session) DropNode(ctx context.Context, hostName string) error {
	r, err := s.UpRecord(ctx)
	if err != nil || r == nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(r.Nodes),
		func(n topology.Spec) bool { return n.HostName(s.Name) == hostName })
	if len(left) == len(r.Nodes) {
		return nil
	}
	r.Nodes = left
	return s.WriteRecord(ctx, r)
}
