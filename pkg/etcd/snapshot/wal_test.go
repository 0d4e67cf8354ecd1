package snapshot

import (
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func number(n uint64) *uint64 { return &n }

// TestAllEntriesAreCommitted: the member had not learned yet that the others had its last entries.
func TestAllEntriesAreCommitted(t *testing.T) {
	dir := t.TempDir()
	w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "member", "wal"), nil)
	must.NoError(t, err)
	must.NoError(t, w.SaveSnapshot(&walpb.Snapshot{
		Index: number(0), Term: number(0), ConfState: &raftpb.ConfState{},
	}))
	var entries []*raftpb.Entry
	for i := range uint64(5) {
		entries = append(entries, &raftpb.Entry{Index: number(i + 1), Term: number(1), Data: []byte("x")})
	}
	must.NoError(t, w.Save(&raftpb.HardState{Term: number(1), Vote: number(7), Commit: number(3)}, entries))
	must.NoError(t, w.Close())
	for range 2 { // a second time changes nothing
		must.NoError(t, CommitAll(dir))
		w, state, last, err := openWAL(filepath.Join(dir, "member", "wal"))
		must.NoError(t, err)
		must.NoError(t, w.Close())
		if last != 5 || state.GetCommit() != 5 || state.GetTerm() != 1 || state.GetVote() != 7 {
			t.Errorf("the last entry is %d, the state %v", last, state)
		}
	}
}

func TestAMissingWALIsAnError(t *testing.T) {
	if err := CommitAll(t.TempDir()); err == nil {
		t.Error("all entries are committed")
	}
}
