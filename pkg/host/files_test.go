package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestReplaceAndPutBack(t *testing.T) {
	f := Files{Root: t.TempDir()}
	const path = "/etc/docker/daemon.json"
	if err := os.MkdirAll(f.Path("/etc/docker"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path(path), []byte("owner"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(f.Path(path), 1234, 1235); err != nil {
		t.Fatal(err)
	}
	for _, ours := range []string{"ours 1", "ours 2"} {
		if err := f.UserFile(path).Replace([]byte(ours), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if now := ownerOf(t, f.Path(path)); now != "640 1234:1235" {
		t.Errorf("the file of the user became %s", now)
	}
	for range 2 { // twice is harmless
		if err := f.UserFile(path).PutBack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.Read(path)
	if err != nil || !bytes.Equal(got, []byte("owner")) || ownerOf(t, f.Path(path)) != "640 1234:1235" {
		t.Errorf("got %q %v %s", got, err, ownerOf(t, f.Path(path)))
	}
}

func ownerOf(t *testing.T, path string) string {
	t.Helper()
	may, err := accessTo(path, access{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%o %d:%d", may.Mode, may.UID, may.GID)
}

// TestPutBackLeavesWhatTheOwnerChanged: a changed file is reported once and is
// not a failure.
func TestPutBackLeavesWhatTheOwnerChanged(t *testing.T) {
	f := Files{Root: t.TempDir()}
	if err := os.MkdirAll(f.Path("/etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path("/etc/replaced"), []byte("before"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/etc/replaced", "/etc/made"} {
		if err := f.UserFile(path).Replace([]byte("ours"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.Write(path, []byte("owner's edit"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	ctx := step.WithLeft(t.Context(), func(what string) { left = append(left, what) })
	for _, path := range []string{"/etc/replaced", "/etc/made", "/etc/replaced", "/etc/made"} {
		if err := f.UserFile(path).PutBack(ctx); err != nil {
			t.Error(err)
		}
		if now, err := f.Read(path); err != nil || string(now) != "owner's edit" {
			t.Errorf("%s is now %q, %v", path, now, err)
		}
	}
	if len(left) != 2 || !strings.Contains(left[0], "/etc/replaced.before-kube-bootstrap") {
		t.Errorf("left %q", left)
	}
	if kept, err := f.Read("/etc/replaced.before-kube-bootstrap"); err != nil || string(kept) != "before" || f.Exists("/etc/made.before-kube-bootstrap") {
		t.Errorf("the original is %q, %v", kept, err)
	}
}

func TestRemoveTakesOnlyDirectoriesWeMade(t *testing.T) {
	f := Files{Root: t.TempDir()}
	if err := os.MkdirAll(f.Path("/etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Write("/etc/cni/net.d/x.conflist", []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove("/etc/cni/net.d/x.conflist"); err != nil {
		t.Fatal(err)
	}
	if f.Exists("/etc/cni") || !f.Exists("/etc") {
		t.Errorf("cni left: %v, etc left: %v", f.Exists("/etc/cni"), f.Exists("/etc"))
	}
}

func TestMissingSeesContentAndMode(t *testing.T) {
	f := Files{Root: t.TempDir()}
	tree := []File{{Path: "/a/b", Data: []byte("x")}}
	if diff, err := f.Missing(tree); err != nil || len(diff) != 1 {
		t.Fatalf("%v %v", diff, err)
	}
	if err := f.Put(tree); err != nil {
		t.Fatal(err)
	}
	if diff, err := f.Missing(tree); err != nil || len(diff) != 0 {
		t.Errorf("%v %v", diff, err)
	}
	if err := os.Chmod(f.Path("/a/b"), 0o644); err != nil {
		t.Fatal(err)
	}
	if diff, _ := f.Missing(tree); len(diff) != 1 {
		t.Errorf("a wider mode went unseen: %v", diff)
	}
}

func TestLockIsHeldOnce(t *testing.T) {
	path := t.TempDir() + "/lock"
	release, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), path); err == nil {
		t.Error("a second lock was given")
	}
	release()
	if release, err = Lock(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	release()
}

func TestLockWaitsForTheBackground(t *testing.T) {
	path := t.TempDir() + "/lock"
	_, release, err := LockInBackground(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := LockInBackground(t.Context(), path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock in the background: %v", err)
	}
	if _, err := LockUnless(t.Context(), path, func() bool { return true }); !errors.Is(err, ErrLocked) {
		t.Errorf("a run that the background waits for waits for it: %v", err)
	}
	time.AfterFunc(100*time.Millisecond, release)
	if release, err = Lock(t.Context(), path); err != nil {
		t.Fatalf("a run did not wait for the background: %v", err)
	}
	defer release()
	if _, _, err := LockInBackground(t.Context(), path); !errors.Is(err, ErrLocked) {
		t.Errorf("the background does not leave it to a run: %v", err)
	}
}

func TestTheBackgroundLetsGoOfALockThatARunWaitsFor(t *testing.T) {
	path := t.TempDir() + "/lock"
	held, release, err := LockInBackground(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-held.Done() // a repair that takes its time
		release()
	}()
	forRun, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatalf("a run did not get the lock: %v", err)
	}
	forRun()
	if err := syscall.Kill(os.Getpid(), wanted); err != nil { // a late one is harmless
		t.Error(err)
	}
}

func TestRemoveTakesWhatAKilledWriteLeft(t *testing.T) {
	files := Files{Root: t.TempDir()}
	if err := files.MkdirAll("/opt/a"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.Path("/opt/a/.kube-bootstrap-one-123"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.Remove("/opt/a/one"); err != nil || files.Exists("/opt") {
		t.Errorf("%v, /opt is left: %v", err, files.Exists("/opt"))
	}
}
