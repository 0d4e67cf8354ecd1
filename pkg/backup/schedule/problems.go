package schedule

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ProblemOf returns the problem for which a backup to a place has failed, with its remedy.
func ProblemOf(err error, to string) *step.Problem {
	if found := step.Problems(err); len(found) > 0 {
		return found[0]
	}
	code := backup.S3Code(err)
	switch {
	case is(err, full) || slices.Contains(fullCodes, code):
		return &step.Problem{
			Name: "backup-full", Firm: true, Text: "the place of the backups has no space: " + err.Error(),
			Remedy: "free space in " + to + ", or give another place to `kube-bootstrap backup schedule`"}
	case is(err, denied) || slices.Contains(deniedCodes, code):
		return &step.Problem{
			Name: "backup-denied", Firm: true, Text: "the place of the backups refuses a request: " + err.Error(),
			Remedy: "permit the control planes to list, read, write and delete files in " + to +
				", or give other credentials to `kube-bootstrap backup schedule`"}
	case code == "RequestTimeTooSkewed":
		return &step.Problem{
			Name: "backup-clock", Firm: true, Text: "the clock differs from that of the object store: " + err.Error(),
			Remedy: "set the clock of the control plane that has failed, or have it synchronized (NTP)"}
	case is(err, missing) || code == "NoSuchBucket":
		return &step.Problem{
			Name: "backup-place", Firm: true, Text: "the place of the backups is missing: " + err.Error(),
			Remedy: "create or mount " + to + " on every control plane"}
	case backup.InBucket(to) && errors.As(err, new(net.Error)):
		return &step.Problem{
			Name: "backup-unreachable", Firm: true, Text: "the server of the backups does not answer: " + err.Error(),
			Remedy: "start the server of " + to + ", or let the control planes connect to it"}
	}
	return &step.Problem{Name: "backup-failed", Firm: true, Text: "the backup could not be made: " + err.Error(),
		Remedy: "solve it; the control planes try the backup again every few minutes"}
}

// The errors of directories, and the codes of buckets, that have the same remedy.
var (
	full    = []error{syscall.ENOSPC, syscall.EDQUOT}
	denied  = []error{fs.ErrPermission, syscall.EROFS}
	missing = []error{fs.ErrNotExist, syscall.ENOTDIR}

	fullCodes   = []string{"QuotaExceeded", "XMinioStorageFull"}
	deniedCodes = []string{"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"}
)

func is(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// FailureOf returns the failure of a control plane with an error.
func FailureOf(err error, host, to string, now time.Time) *Failure {
	p := ProblemOf(err, to)
	return &Failure{Name: p.Name, Text: p.Text, Remedy: p.Remedy, At: now, Host: host, To: to}
}

// Problem returns the failure as `status` shows it.
func (f Failure) Problem(what string) *step.Problem {
	return &step.Problem{
		Name: f.Name, Firm: true, Remedy: f.Remedy,
		Text: fmt.Sprintf("%s failed on %s at %s: %s", what, f.Host, f.At.UTC().Format(time.DateTime)+" UTC", f.Text),
	}
}

// Problems returns what keeps the cluster from having good backups [backup-suspended, backup-overdue]. cluster is the
// ID of the cluster of etcd.
func (s Schedule) Problems(state State, cluster string, now time.Time) (all []*step.Problem) {
	if s.Cluster != cluster {
		return append(all, &step.Problem{
			Name: "backup-suspended", Firm: true,
			Text:   "no backups are made, because this cluster was restored from a backup and may be a copy",
			Remedy: "if it replaces the cluster of the backup, run `kube-bootstrap backup schedule --resume`",
		})
	}
	if state.Failure != nil && state.Failure.To == s.To {
		all = append(all, state.Failure.Problem("the backup to "+s.To))
	}
	if state.Kept != nil && state.Kept.To == s.To {
		all = append(all, state.Kept.Problem("the removal of old backups in "+s.To))
	}
	last, found := state.Last(s.To)
	since := s.Since
	if found {
		since = last.Created
	}
	if late := now.Sub(since); late > overdueFactor*s.Every.Duration && len(all) == 0 {
		all = append(all, &step.Problem{
			Name: "backup-overdue", Firm: true,
			Text: fmt.Sprintf("no backup was made for %s, and one is due every %s", late.Round(time.Minute),
				s.Every.Duration),
			Remedy: "look for \"back up\" in the log of the agent of each control plane (kube-bootstrap-agent.service)",
		})
	}
	return all
}
