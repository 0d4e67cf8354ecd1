package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// BeginRecovery is the step before all others: from here on, only a recovery continues on this host.
func BeginRecovery(files host.Files) step.Step {
	return files.Step("begin-recovery", "record the recovery", func() ([]host.File, error) {
		return []host.File{local.RecoveringMark}, nil
	})
}

// EndRecovery is the last step.
func EndRecovery(files host.Files) step.Step {
	begun := func(context.Context) (bool, error) { return files.Exists(local.RecoveringFile), nil }
	return step.When("end-recovery", "end the recovery", "remove "+local.RecoveringFile, begun,
		func(context.Context) error {
			return errors.Join(files.RemoveAll(etcd.FormerDir), files.Remove(local.RecoveringFile))
		})
}

// QuorumProblem returns the problem that the cluster of this control plane needs no recovery, because a member of
// etcd answers and has a leader [etcd-has-quorum].
func QuorumProblem(ctx context.Context, own etcd.Member) error {
	all, _ := own.Status(ctx) // an error means that no member answers
	if !slices.ContainsFunc(all, func(s etcd.MemberStatus) bool { return s.Led }) {
		return nil
	}
	return &step.Problem{
		Name: "etcd-has-quorum", Firm: true,
		Text: "etcd has a quorum, so that a recovery would only lose members and data",
		Remedy: "run `kube-bootstrap master` to repair this host; `kube-bootstrap forget` removes a control plane " +
			"that is lost",
	}
}

// Recover returns the steps that make this member the only one, with all data up to its last write.
//
//	data ──▶ copy, started alone ──▶ snapshot ──▶ data of a new cluster ──▶ data
//
// The start alone reads the write-ahead log. The new cluster has another ID, which the other members refuse if they
// come back. --force-new-cluster alone would keep the ID.
// https://github.com/k3s-io/k3s/issues/11992
func Recover(own etcd.MemberContainer) step.Plan {
	r := recovering{own, own.Member.Data.Files}
	make, take := "recover the data of etcd", "use the recovered data of etcd"
	return step.Plan{
		{step.When("recover-etcd", make, make, r.unmade, r.make)},
		{step.When("use-recovered-etcd", take, take, r.untaken, r.take)},
	}
}

type recovering struct {
	own   etcd.MemberContainer
	files host.Files
}

func (r recovering) unmade(context.Context) (bool, error) {
	return !r.files.Exists(etcd.CompleteDir) && !r.files.Exists(etcd.FormerDir), nil
}

func (r recovering) untaken(context.Context) (bool, error) {
	return r.files.Exists(etcd.CompleteDir) || !r.files.Exists(etcd.FormerDir), nil
}

func (r recovering) take(context.Context) error { return r.own.Member.Replace() }

// make leaves the data of this member as they are. If etcd cannot start from them, it uses the database alone.
func (r recovering) make(ctx context.Context) error {
	if err := errors.Join(r.own.Stop(ctx), r.files.RemoveAll(etcd.NewDir)); err != nil {
		return err
	}
	err := r.fromAll(ctx)
	if len(step.Problems(err)) > 0 || errors.Is(err, errWAL) {
		step.Report(ctx, "use the database alone: "+err.Error(), 0, 0)
		err = r.fromDatabase()
	}
	if err != nil {
		return err
	}
	err = os.Rename(r.files.Path(etcd.NewDir), r.files.Path(etcd.CompleteDir))
	return errors.Join(err, r.files.RemoveAll(etcd.CopyDir))
}

// errWAL means that the write-ahead log cannot be read.
var errWAL = errors.New("read the write-ahead log of etcd")

// fromAll uses a start of etcd on a copy of the data.
func (r recovering) fromAll(ctx context.Context) error {
	if err := r.copy(); err != nil {
		return err
	}
	if err := snapshot.CommitAll(r.files.Path(etcd.CopyDir)); err != nil {
		return fmt.Errorf("%w: %w", errWAL, err)
	}
	saved, err := host.UnnamedFile(r.files.Path(host.StateDir))
	if err != nil {
		return err
	}
	defer saved.Close()
	err = r.own.Forced(ctx, func(client *clientv3.Client) error {
		return snapshot.Save(ctx, client, saved)
	})
	if err != nil {
		return err
	}
	own := r.own.Member
	return snapshot.Restore(saved, r.files.Path(etcd.NewDir), onlyMember(own), recoveryBump, dismissOthers(own.Name))
}

func (r recovering) copy() error {
	if err := errors.Join(r.files.RemoveAll(etcd.CopyDir), r.files.MkdirPrivate(etcd.CopyDir)); err != nil {
		return err
	}
	return os.CopyFS(r.files.Path(etcd.CopyDir), os.DirFS(r.files.Path(etcd.DataDir)))
}

// fromDatabase loses what is in the write-ahead log only: what etcd has stored less than a second before it ended.
func (r recovering) fromDatabase() error {
	database := filepath.Join(r.files.Path(etcd.DataDir), "member", "snap", "db")
	if err := r.files.MkdirPrivate(etcd.NewDir); err != nil {
		return err
	}
	own := r.own.Member
	err := snapshot.RestoreDatabase(
		database, r.files.Path(etcd.NewDir), onlyMember(own), recoveryBump, dismissOthers(own.Name))
	if err == nil {
		return nil
	}
	return &step.Problem{
		Name: "etcd-data", Firm: true, Text: fmt.Sprintf("the database of etcd on this host cannot be read: %v", err),
		Remedy: "run `kube-bootstrap turndown`, and then `kube-bootstrap restore` with a backup of the cluster",
	}
}

// recoveryBump is more than etcd's revision of the other members can have been ahead, or can grow before they notice
// the recovery. It is less than that of a restore, so that a restore after a recovery has a higher revision.
const recoveryBump = 100_000_000
