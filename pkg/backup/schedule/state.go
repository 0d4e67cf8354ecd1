package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
)

// StateKey is the key of etcd with the State.
const StateKey = "/kube-bootstrap/backups"

// State is what the control planes know about the backups of the schedule.
type State struct {
	Backups []Backup `json:"backups,omitempty"` // the good ones, oldest first
	Begun   []Begun  `json:"begun,omitempty"`   // names that were written to and are not good, oldest first
	Failure *Failure `json:"failure,omitempty"` // of the last attempt
	// Kept is the failure to remove old backups.
	Kept *Failure `json:"kept,omitempty"`
}

// Backup is a backup that was read again after it was written.
type Backup struct {
	Begun
	Size    int64     `json:"size"` // bytes
	Version string    `json:"version"`
	Created time.Time `json:"created"`
}

// Begun is a name that a control plane has begun to write to.
type Begun struct {
	To   string `json:"to"`
	Name string `json:"name"` // in To
	Host string `json:"host"` // control plane that writes it
}

// Failure is a problem of the last attempt.
type Failure struct {
	Name   string    `json:"name"` // of the problem
	Text   string    `json:"text"`
	Remedy string    `json:"remedy"`
	At     time.Time `json:"at"`
	Host   string    `json:"host"`
	To     string    `json:"to"`
}

// mostBegun limits the State while a place refuses to remove files.
const mostBegun = 50

// Path returns the path of a backup.
func (b Begun) Path() string { return backup.Join(b.To, b.Name) }

// Last returns the newest good backup in a place, or in any place if to is empty.
func (s State) Last(to string) (last Backup, found bool) {
	for _, b := range s.Backups {
		if (to == "" || b.To == to) && !b.Created.Before(last.Created) {
			last, found = b, true
		}
	}
	return last, found
}

// Begin notes a name before anything is written to it, so that the next backup removes what a killed one has left.
func (s *State) Begin(b Begun) {
	s.Begun = append(s.Begun, b)
	s.Begun = s.Begun[max(0, len(s.Begun)-mostBegun):]
}

// Complete notes that a backup is good.
func (s *State) Complete(b Backup) {
	s.Begun = slices.DeleteFunc(s.Begun, func(o Begun) bool { return o == b.Begun })
	s.Backups = append(s.Backups, b)
	s.Failure = nil
}

// Forget drops names and backups that are gone or no longer matter.
func (s *State) Forget(gone []Begun) {
	isGone := func(b Begun) bool { return slices.Contains(gone, b) }
	s.Begun = slices.DeleteFunc(s.Begun, isGone)
	s.Backups = slices.DeleteFunc(s.Backups, func(b Backup) bool { return isGone(b.Begun) })
	s.Backups = s.Backups[max(0, len(s.Backups)-2*mostKept):]
}

// Restored returns the value of StateKey for a cluster that was restored. In the State of a backup, the backup itself
// has only begun, and the next one would remove it.
func Restored(value string) string {
	var s State
	if json.Unmarshal([]byte(value), &s) != nil {
		return "{}"
	}
	s.Begun = nil
	data, err := json.Marshal(s)
	if err != nil {
		return "{}"
	}
	return string(data)
}

// Read returns the State, and the revision of its key.
func Read(ctx context.Context, client *clientv3.Client) (s State, revision int64, err error) {
	found, err := client.Get(ctx, StateKey)
	if err != nil {
		return s, 0, fmt.Errorf("read the state of the backups: %w", err)
	}
	if len(found.Kvs) == 0 {
		return s, 0, nil
	}
	if err := json.Unmarshal(found.Kvs[0].Value, &s); err != nil {
		return State{}, found.Kvs[0].ModRevision, fmt.Errorf("key %s of etcd: %w", StateKey, err)
	}
	return s, found.Kvs[0].ModRevision, nil
}

// Change changes the State. It calls change again if another control plane has changed the State meanwhile.
func Change(ctx context.Context, client *clientv3.Client, change func(*State)) error {
	for range changeAttempts {
		now, revision, err := Read(ctx, client)
		if err != nil {
			return err
		}
		change(&now)
		data, err := json.Marshal(now)
		if err != nil {
			return err
		}
		same := clientv3.Compare(clientv3.ModRevision(StateKey), "=", revision)
		answer, err := client.Txn(ctx).If(same).Then(clientv3.OpPut(StateKey, string(data))).Commit()
		if err != nil {
			return fmt.Errorf("write the state of the backups: %w", err)
		}
		if answer.Succeeded {
			return nil
		}
	}
	return errors.New("write the state of the backups: other control planes change it")
}

// changeAttempts is more than the control planes of a cluster.
const changeAttempts = 10
