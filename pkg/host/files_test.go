package host

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPutBackLeavesWhatTheOwnerChanged: a changed file is reported once and is
// not a failure.
func TestPutBackLeavesWhatTheOwnerChanged(t *testing.T) {
	f := Files{Root: t.TempDir()}
	must.NoError(t, os.MkdirAll(f.Path("/etc"), 0o755))
	must.NoError(t, os.WriteFile(f.Path("/etc/replaced"), []byte("before"), 0o640))
	for _, path := range []string{"/etc/replaced", "/etc/made"} {
		must.NoError(t, f.UserFile(path).Replace([]byte("ours"), 0o644))
		must.NoError(t, f.Write(path, []byte("owner's edit"), 0o644))
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
	if kept, err := f.Read("/etc/replaced.before-kube-bootstrap"); err != nil || string(kept) != "before" ||
		f.Exists("/etc/made.before-kube-bootstrap") {
		t.Errorf("the original is %q, %v", kept, err)
	}
}

// TestASymbolicLinkIsRestored: the target belongs to configuration management, for
// example, and stays as it is.
func TestASymbolicLinkIsRestored(t *testing.T) {
	for _, target := range []string{"../managed/daemon.json", "missing.json"} {
		f := Files{Root: t.TempDir()}
		const path, managed = "/etc/docker/daemon.json", "/etc/managed/daemon.json"
		must.NoError(t, f.Write(managed, []byte("owner"), 0o640))
		must.NoError(t, f.Symlink(path, target))
		for range 2 {
			must.NoError(t, f.UserFile(path).Replace([]byte("ours"), 0o644))
		}
		if link, err := f.LinkTarget(path); link != "" || err != nil {
			t.Errorf("the link to %s was not replaced: %v", link, err)
		}
		if text, err := f.Read(managed); string(text) != "owner" || err != nil {
			t.Errorf("the target is now %q, %v", text, err)
		}
		for range 2 {
			must.NoError(t, f.UserFile(path).PutBack(t.Context()))
		}
		if link, err := f.LinkTarget(path); link != target || err != nil {
			t.Errorf("restored a link to %q, want %q, %v", link, target, err)
		}
	}
}

func TestReturnReportsALink(t *testing.T) {
	f := Files{Root: t.TempDir()}
	const path = "/etc/docker/daemon.json"
	must.NoError(t, f.Symlink(path, "managed"))
	must.NoError(t, f.UserFile(path).Replace([]byte("ours"), 0o644))
	var left []string
	ctx := step.WithLeft(t.Context(), func(what string) { left = append(left, what) })
	must.NoError(t, f.UserFile(path).Return(ctx, []byte("edited"), 0o644))
	if text, err := f.Read(path); string(text) != "edited" || err != nil || len(left) != 1 ||
		!strings.Contains(left[0], "a symbolic link to managed") {
		t.Errorf("the file is %q, %v; reported %q", text, err, left)
	}
}

// TestASymbolicLinkThatWasReplaced: only a link to another target, or a file, is a change.
func TestASymbolicLinkThatWasReplaced(t *testing.T) {
	const path = "/etc/docker/daemon.json"
	for name, c := range map[string]struct {
		change func(Files) error
		want   string
	}{
		"by the same link": {func(f Files) error { return f.Symlink(path, "managed") }, ""},
		"by another link":  {func(f Files) error { return f.Symlink(path, "another") }, "a symbolic link to managed"},
		"by a file": {func(f Files) error {
			return f.Write(path, []byte("new"), 0o644)
		}, "a symbolic link to managed"},
	} {
		f := Files{Root: t.TempDir()}
		must.NoError(t, f.Symlink(path, "managed"))
		must.NoError(t, f.UserFile(path).Replace([]byte("ours"), 0o644))
		must.NoError(t, c.change(f))
		must.NoError(t, f.Write("/etc/docker/managed", []byte("changed"), 0o644))
		var left []string
		ctx := step.WithLeft(t.Context(), func(what string) { left = append(left, what) })
		must.NoError(t, f.UserFile(path).PutBack(ctx))
		if all := strings.Join(left, "\n"); (c.want == "") != (all == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: reported %q", name, all)
		}
	}
}

func TestRemoveTakesOnlyDirectoriesWeMade(t *testing.T) {
	f := Files{Root: t.TempDir()}
	must.NoError(t, os.MkdirAll(f.Path("/etc"), 0o755))
	must.NoError(t, f.Write("/etc/cni/net.d/x.conflist", []byte("{}"), 0o644))
	must.NoError(t, f.Remove("/etc/cni/net.d/x.conflist"))
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
	must.NoError(t, f.Put(tree))
	if diff, err := f.Missing(tree); err != nil || len(diff) != 0 {
		t.Errorf("%v %v", diff, err)
	}
	must.NoError(t, os.Chmod(f.Path("/a/b"), 0o644))
	if diff, _ := f.Missing(tree); len(diff) != 1 {
		t.Errorf("a wider mode went unseen: %v", diff)
	}
}

func TestLockIsHeldOnce(t *testing.T) {
	path := t.TempDir() + "/lock"
	release, err := Lock(t.Context(), path)
	must.NoError(t, err)
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
	must.NoError(t, err)
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
	must.NoError(t, err)
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
	must.NoError(t, files.MkdirAll("/opt/a"))
	must.NoError(t, os.WriteFile(files.Path("/opt/a/.kube-bootstrap-one-123"), nil, 0o600))
	if err := files.Remove("/opt/a/one"); err != nil || files.Exists("/opt") {
		t.Errorf("%v, /opt is left: %v", err, files.Exists("/opt"))
	}
}
