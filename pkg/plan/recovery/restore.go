package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup/schedule"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Begin is the step before all others: from here on, only a restore of the same backup continues on this host.
func (b *Backup) Begin(files host.Files) step.Step {
	return files.Step("begin-restore", "record the restore", func() ([]host.File, error) {
		record, err := local.RestoringRecord.File(b.record())
		return []host.File{record}, err
	})
}

// End is the last step.
func End(files host.Files) step.Step {
	begun := func(context.Context) (bool, error) { return files.Exists(local.RestoringFile), nil }
	return step.When("end-restore", "end the restore", "remove "+local.RestoringFile, begun,
		func(context.Context) error { return files.Remove(local.RestoringFile) })
}

func (b *Backup) record() local.Restoring {
	return local.Restoring{Cluster: b.Manifest.Cluster, Host: b.Manifest.Host, Created: b.Manifest.Created}
}

// Continues reports whether a restore of this backup was interrupted on this host.
func (b *Backup) Continues(files host.Files) bool {
	begun, err := local.RestoringRecord.Read(files)
	return err == nil && begun == b.record()
}

// Steps returns the steps that write the keys of the cluster and then the data of etcd from the snapshot.
func (b *Backup) Steps(files host.Files, own etcd.Member, from *os.File) step.Plan {
	return step.Plan{{b.files(files)}, {b.data(own, from)}}
}

// files has no Undo, because the steps that use the files remove them.
func (b *Backup) files(files host.Files) step.Step {
	return files.Step("restore-files", "restore the keys of the cluster", func() (all []host.File, err error) {
		for _, shared := range controlplane.SharedFiles() {
			all = append(all, host.File{Path: shared.Path, Data: b.File(shared.Path), Mode: shared.Mode})
		}
		for _, f := range b.Files {
			if copied(f.Path) {
				all = append(all, f)
			}
		}
		return all, nil
	})
}

// data makes the data of etcd beside their directory, and gives them its name when they are complete.
func (b *Backup) data(own etcd.Member, from *os.File) step.Step {
	const name = "restore the data of etcd"
	missing := func(context.Context) (bool, error) { return !own.Data.Exist(), nil }
	return step.When("restore-etcd", name, name+" of "+b.Manifest.Created.Format(time.DateTime), missing,
		func(context.Context) error {
			files := own.Data.Files
			if err := errors.Join(files.RemoveAll(etcd.NewDir), files.MkdirPrivate(etcd.NewDir)); err != nil {
				return err
			}
			err := snapshot.Restore(
				from, files.Path(etcd.NewDir), onlyMember(own), b.bump(time.Now()), edit(own.Name))
			if err != nil {
				return err
			}
			return os.Rename(files.Path(etcd.NewDir), files.Path(etcd.DataDir))
		})
}

func onlyMember(own etcd.Member) snapshot.Member {
	return snapshot.Member{Name: own.Name, PeerURL: own.PeerURL(), Token: token()}
}

// token differs from that of the cluster before: its members that still run then refuse this one, and it refuses
// them.
func token() string { return fmt.Sprintf("kube-bootstrap-%d", time.Now().UnixNano()) }

// bump is more than etcd's revision can have grown since the backup: etcd makes less than 10,000 changes a second. The
// constant covers clocks that differ.
func (b *Backup) bump(now time.Time) uint64 {
	const perSecond, least = 10_000, 1_000_000_000
	return least + perSecond*uint64(max(0, now.Sub(b.Manifest.Created)/time.Second))
}

// edit returns the function that changes the keys that are wrong in the restored cluster.
func edit(own string) func(snapshot.Keys) error {
	return func(keys snapshot.Keys) error {
		if err := dismissOthers(own)(keys); err != nil {
			return err
		}
		found, err := keys.Below(schedule.StateKey)
		if err != nil {
			return err
		}
		for _, key := range found {
			keys.Put(key.Name, schedule.Restored(key.Value))
		}
		return nil
	}
}

// dismissOthers returns the function that makes the other members of the cluster before former control planes. They
// may still run. The first start of this host lists it again.
func dismissOthers(own string) func(snapshot.Keys) error {
	return func(keys snapshot.Keys) error {
		for _, prefix := range etcd.OfMembers() {
			found, err := keys.Below(prefix)
			if err != nil {
				return err
			}
			for _, key := range found {
				keys.Delete(key.Name)
				if former := etcd.FormerEntry(key.Value, own); former != "" {
					keys.Put(key.Name, former)
				}
			}
		}
		return nil
	}
}

// copied reports whether a restore copies a file. It derives the others from the settings.
func copied(path string) bool {
	return path == parts.NetworkFile || path == controlplane.LeafLifeFile || filepath.Dir(path) == parts.AddonsDir
}
