// Package schedule has the schedule of the backups of a cluster and the state of these backups: when the next one is
// due, which ones are good, which ones are removed, and what has failed.
//
//	Schedule   a Secret in kube-system, because it may contain the keys of a bucket. The API server encrypts it, every
//	           control plane reads it, and a joining control plane needs no copy.
//	State      a key of etcd. The control plane that makes a backup writes it, also while no API server answers.
package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
)

// Schedule states when backups are made, for whom, and where they are stored.
type Schedule struct {
	Every      metav1.Duration `json:"every"`
	Keep       int             `json:"keep"`                 // number of good backups
	To         string          `json:"to"`                   // directory of each control plane, or s3://BUCKET/PREFIX
	Recipients []string        `json:"recipients,omitempty"` // public keys of age; none: not encrypted
	S3         backup.S3       `json:"s3,omitzero"`
	Since      time.Time       `json:"since"`
	// Cluster is the ID of the cluster of etcd. A restored cluster has another one. It does not follow the schedule,
	// because it may be a copy, which would remove the backups of the real cluster.
	Cluster string `json:"cluster"`
}

const (
	shortest = time.Minute
	// mostKept limits the size of State.
	mostKept = 500
	// retryAfter is the pause after a backup that failed.
	retryAfter = 10 * time.Minute
	// longestJitter and jitterPart limit the time by which a backup is late on purpose: all clusters of a user would
	// write to the same place at the same time otherwise.
	longestJitter, jitterPart = 10 * time.Minute, 10
	// overdueFactor is the number of intervals after which a backup is missing.
	overdueFactor = 2
)

// Validate returns what is wrong with a schedule.
func (s Schedule) Validate() error {
	switch {
	case s.Every.Duration < shortest:
		return fmt.Errorf("--every %s: at least %s", s.Every.Duration, shortest)
	case s.Keep < 1 || s.Keep > mostKept:
		return fmt.Errorf("--keep %d: from 1 to %d", s.Keep, mostKept)
	case s.To == "":
		return errors.New("--to is missing: give a directory of the control planes, or s3://BUCKET/PREFIX")
	}
	_, err := s.Place()
	return err
}

// Place returns the place of the backups.
func (s Schedule) Place() (backup.Place, error) { return backup.OpenPlace(s.To, s.S3) }

// Due returns the time of the next backup.
func (s Schedule) Due(state State) time.Time {
	last, found := state.Last(s.To)
	due := s.Since
	if found {
		due = last.Created.Add(s.Every.Duration)
	}
	if f := state.Failure; f != nil && f.To == s.To && f.At.After(s.Since) {
		retry := f.At.Add(min(s.Every.Duration, retryAfter))
		if retry.After(due) {
			due = retry
		}
	}
	return due
}

// Jitter returns a random time that a control plane waits after Due.
func (s Schedule) Jitter() time.Duration {
	return rand.N(min(s.Every.Duration/jitterPart, longestJitter))
}
