// Package snapshot saves the data of etcd as one stream, and makes the data of a new cluster of one member from it.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
)

// Save writes a snapshot of the etcd of a client, and then its hash.
func Save(ctx context.Context, client *clientv3.Client, to io.Writer) error {
	from, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, from.Close())
}

// Member is the only member of the new cluster.
type Member struct {
	Name, PeerURL string
	Token         string // of the cluster; etcd derives the ID of the cluster from it
}

// Restore makes the data of a new cluster from a snapshot with its hash, in a directory that does not exist. It
// raises the revision by bump and marks all revisions before as compacted: clients that have seen a later revision
// than that of the snapshot then read everything again. edit may change keys before a client sees them.
// https://etcd.io/docs/v3.6/op-guide/recovery/#restoring-with-revision-bump
// https://github.com/kubernetes/kubernetes/issues/107457
func Restore(from *os.File, dir string, m Member, bump uint64, edit func(Keys) error) error {
	return restore(snapshot.RestoreConfig{SnapshotPath: pathOf(from)}, dir, m, bump, edit)
}

// RestoreDatabase is Restore from the database of a member that does not run, which has no hash. It first reads the
// whole database.
func RestoreDatabase(path, dir string, m Member, bump uint64, edit func(Keys) error) error {
	if err := verify(path); err != nil {
		return err
	}
	return restore(snapshot.RestoreConfig{SnapshotPath: path, SkipHashCheck: true}, dir, m, bump, edit)
}

func verify(path string) (err error) {
	defer func() {
		if damage := recover(); damage != nil { // of bbolt, which reads pages without checks
			err = fmt.Errorf("read the database of etcd: %v", damage)
		}
	}()
	_, err = snapshot.NewV3(zap.NewNop()).Status(path)
	return err
}

func restore(c snapshot.RestoreConfig, dir string, m Member, bump uint64, edit func(Keys) error) error {
	c.OutputDataDir = dir
	c.Name, c.PeerURLs, c.InitialCluster = m.Name, []string{m.PeerURL}, m.Name+"="+m.PeerURL
	c.InitialClusterToken, c.RevisionBump, c.MarkCompacted = m.Token, bump, true
	if err := snapshot.NewV3(zap.NewNop()).Restore(c); err != nil {
		return err
	}
	return open(dir+"/member/snap/db", func(s mvcc.KV) error {
		return edit(Keys{s})
	})
}

// pathOf returns a path of an open file, which may have no name.
func pathOf(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

// open calls do with the database of a member that does not run. It uses etcd's own storage engine.
func open(path string, do func(mvcc.KV) error) error {
	db := backend.NewDefaultBackend(zap.NewNop(), path)
	defer db.Close()
	// The keys keep their leases, which etcd reads again when it starts.
	store := mvcc.NewStore(zap.NewNop(), db, &lease.FakeLessor{}, mvcc.StoreConfig{})
	defer store.Close()
	if err := do(store); err != nil {
		return err
	}
	store.Commit()
	return nil
}
