package snapshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// saved returns a snapshot with its hash of a database with these keys, and the revision of the database.
func saved(t *testing.T, keys ...string) (*os.File, int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db := backend.NewDefaultBackend(zap.NewNop(), path)
	store := mvcc.NewStore(zap.NewNop(), db, &lease.FakeLessor{}, mvcc.StoreConfig{})
	for _, key := range keys {
		store.Put([]byte(key), []byte("value"), lease.NoLease)
	}
	store.Commit()
	revision := store.Rev()
	must.NoError(t, errors.Join(store.Close(), db.Close()))
	data, err := os.ReadFile(path)
	must.NoError(t, err)
	sum := sha256.Sum256(data)
	file, err := Memory()
	must.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	_, err = file.Write(append(data, sum[:]...))
	must.NoError(t, err)
	return file, revision
}

func TestARestoreRaisesTheRevisionAndMayDropKeys(t *testing.T) {
	const bump = 1_000_000
	from, before := saved(t, "/registry/pods/a", "/list/old", "/list/older")
	dir := filepath.Join(t.TempDir(), "etcd")
	member := Member{Name: "cp", PeerURL: "https://10.0.0.1:2380", Token: "new"}
	must.NoError(t, Restore(from, dir, member, bump, func(k Keys) error {
		found, err := k.Below("/list/")
		if len(found) != 2 {
			return fmt.Errorf("found %v, %w", found, err)
		}
		for _, key := range found {
			k.Delete(key.Name)
		}
		return nil
	}))
	must.NoError(t, open(filepath.Join(dir, "member/snap/db"), func(s mvcc.KV) error {
		if now := s.Rev(); now < before+bump {
			t.Errorf("the revision is %d, and was %d", now, before)
		}
		if _, err := s.Range(t.Context(), []byte("/"), end("/"), mvcc.RangeOptions{Rev: before}); err == nil {
			t.Error("a revision of the snapshot can be read, so a watch of it would continue")
		}
		for prefix, want := range map[string]int{"/registry/": 1, "/list/": 0} {
			if found, err := (Keys{s}).Below(prefix); err != nil || len(found) != want {
				t.Errorf("%s: %v, %v", prefix, found, err)
			}
		}
		return nil
	}))
}

func TestAFailedEditFailsTheRestore(t *testing.T) {
	from, _ := saved(t, "/registry/pods/a")
	member := Member{Name: "cp", PeerURL: "https://10.0.0.1:2380", Token: "new"}
	want := errors.New("no")
	err := Restore(from, filepath.Join(t.TempDir(), "etcd"), member, 1, func(Keys) error { return want })
	if !errors.Is(err, want) {
		t.Errorf("the error is %v", err)
	}
}

func TestADamagedSnapshotIsNotRestored(t *testing.T) {
	from, _ := saved(t, "/registry/pods/a")
	_, err := from.WriteAt([]byte("x"), 100)
	must.NoError(t, err)
	member := Member{Name: "cp", PeerURL: "https://10.0.0.1:2380", Token: "new"}
	if err := Restore(from, filepath.Join(t.TempDir(), "etcd"), member, 1, nil); err == nil {
		t.Error("a changed snapshot is restored")
	}
}

// TestADatabaseIsRestoredWithoutAHash: it is that of a member whose write-ahead log is damaged.
func TestADatabaseIsRestoredWithoutAHash(t *testing.T) {
	from, _ := saved(t, "/registry/pods/a")
	member := Member{Name: "cp", PeerURL: "https://10.0.0.1:2380", Token: "new"}
	path := filepath.Join(t.TempDir(), "db")
	data, err := os.ReadFile(pathOf(from))
	must.NoError(t, err)
	data = data[:len(data)-hashSize]
	must.NoError(t, os.WriteFile(path, data, 0o600))
	must.NoError(t, RestoreDatabase(path, filepath.Join(t.TempDir(), "etcd"), member, 1, func(k Keys) error {
		if found, err := k.Below("/registry/"); err != nil || len(found) != 1 {
			t.Errorf("found %v, %v", found, err)
		}
		return nil
	}))
	clear(data[:2*os.Getpagesize()]) // its heads
	must.NoError(t, os.WriteFile(path, data, 0o600))
	if err := RestoreDatabase(path, filepath.Join(t.TempDir(), "etcd"), member, 1, nil); err == nil {
		t.Error("a damaged database is restored")
	}
}

func TestObjectsAreCountedByResource(t *testing.T) {
	from, _ := saved(t, "/registry/pods/default/a", "/registry/pods/default/b", "/registry/secrets/default/s", "/other")
	counts, err := Count(from)
	if err != nil || len(counts) != 2 || counts["pods"] != 2 || counts["secrets"] != 1 {
		t.Errorf("counted %v, %v", counts, err)
	}
	empty, _ := saved(t, "/other")
	if _, err := Count(empty); err == nil {
		t.Error("a database without objects is accepted")
	}
}
