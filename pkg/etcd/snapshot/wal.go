package snapshot

import (
	"errors"
	"io"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// CommitAll marks all entries in the WAL of a member that does not run as committed. The member may not have learned
// that the others had them, too, and that their clients had got an answer. --force-new-cluster would drop such
// entries. As the leader of the others, the member would have committed them likewise.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/bootstrap.go#L588-L610
func CommitAll(dir string) error {
	dir = filepath.Join(dir, "member", "wal")
	w, state, last, err := openWAL(dir)
	if errors.Is(err, io.ErrUnexpectedEOF) && wal.Repair(zap.NewNop(), dir) {
		w, state, last, err = openWAL(dir)
	}
	if err != nil {
		return err
	}
	if last > state.GetCommit() {
		state.Commit = &last
		err = w.Save(state, nil)
	}
	return errors.Join(err, w.Close())
}

// openWAL returns the WAL, its state and the index of its last entry.
func openWAL(dir string) (*wal.WAL, *raftpb.HardState, uint64, error) {
	found, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err == nil && len(found) == 0 {
		err = wal.ErrSnapshotNotFound
	}
	if err != nil {
		return nil, nil, 0, err
	}
	from := found[len(found)-1]
	w, err := wal.Open(zap.NewNop(), dir, from)
	if err != nil {
		return nil, nil, 0, err
	}
	_, state, entries, err := w.ReadAll()
	if err != nil {
		return nil, nil, 0, errors.Join(err, w.Close())
	}
	last := from.GetIndex()
	for _, e := range entries {
		last = e.GetIndex()
	}
	return w, state, last, nil
}
