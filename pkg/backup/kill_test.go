package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/fsnotify/fsnotify"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// The variables of a process that writes backups until it is killed: the place, the URL of its server, the recipient.
const placeVariable, urlVariable, recipientVariable = "TEST_BACKUP_PLACE", "TEST_BACKUP_URL", "TEST_BACKUP_RECIPIENT"

// TestMain is also that process.
func TestMain(m *testing.M) {
	if to := os.Getenv(placeVariable); to != "" {
		fmt.Fprintln(os.Stderr, writeForever(to))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func writeForever(to string) error {
	place, err := OpenPlace(to, rootAccess(os.Getenv(urlVariable)))
	if err != nil {
		return err
	}
	recipients, err := Recipients([]string{os.Getenv(recipientVariable)})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("cp-%d-%d%s", os.Getpid(), i, Suffix)
		if _, err := place.Write(context.Background(), name, sourceOf(snapshotOf(2000)), recipients); err != nil {
			return err
		}
	}
}

// rootAccess are the credentials of the user root of test/objectstore.
func rootAccess(url string) S3 {
	return S3{Endpoint: url, Region: "us-east-1", AccessKey: "root", SecretKey: "root-secret"}
}

const kills = 20

// survivesKills kills a process at random moments while it writes backups. Each file that has a name must be good.
func survivesKills(t *testing.T, to, url string) {
	id, seed := newIdentity(t), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	pauses, good := rand.New(rand.NewPCG(seed, 0)), 0
	place, err := OpenPlace(to, rootAccess(url))
	must.NoError(t, err)
	for range kills {
		killOne(t, to, url, id, time.Duration(pauses.IntN(int(time.Second))))
		good = max(good, allGood(t, place, id))
	}
	if good == 0 {
		t.Error("no process has made a backup before it was killed")
	}
}

func killOne(t *testing.T, to, url string, id *age.X25519Identity, after time.Duration) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), placeVariable+"="+to, urlVariable+"="+url,
		recipientVariable+"="+id.Recipient().String())
	var said bytes.Buffer
	c.Stderr = &said
	must.NoError(t, c.Start())
	time.Sleep(200*time.Millisecond + after) // the process starts first
	_ = c.Process.Kill()
	if _ = c.Wait(); c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process has ended: %s", said.String())
	}
}

// allGood returns the number of backups of a place, and removes them.
func allGood(t *testing.T, place Place, id age.Identity) int {
	t.Helper()
	listed, err := place.List(t.Context())
	must.NoError(t, err)
	for _, f := range listed {
		from, err := place.Open(t.Context(), f.Name)
		must.NoError(t, err)
		if _, err := Read(from, []age.Identity{id}, io.Discard); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		must.NoError(t, from.Close())
		must.NoError(t, place.Remove(t.Context(), f.Name))
	}
	return len(listed)
}

func TestABackupInADirectoryIsCompleteAfterAKill(t *testing.T) { survivesKills(t, t.TempDir(), "") }

func TestADirectoryListsBackups(t *testing.T) {
	dir := Directory{t.TempDir()}
	f, err := dir.Write(t.Context(), "cp.backup", sourceOf(snapshotOf(3)), nil)
	must.NoError(t, err)
	must.Write(t, filepath.Join(dir.Path, "notes.txt"), "x")
	must.NoError(t, os.Mkdir(filepath.Join(dir.Path, "dir.backup"), 0o700))
	if listed, err := dir.List(t.Context()); err != nil || !slices.Equal(listed, []File{f}) {
		t.Errorf("%v, %v", listed, err)
	}
	must.Write(t, filepath.Join(dir.Path, f.Name), "")
	if listed, err := dir.List(t.Context()); err != nil || listed[0].Size != 0 || listed[0].Version == f.Version {
		t.Errorf("emptied: %v, %v", listed, err)
	}
	for range 2 {
		must.NoError(t, dir.Remove(t.Context(), f.Name))
	}
}

func TestAMissingDirectoryIsNotCreated(t *testing.T) {
	dir := Directory{filepath.Join(t.TempDir(), "mount")}
	_, err := dir.Write(t.Context(), "cp.backup", sourceOf(snapshotOf(3)), nil)
	if !os.IsNotExist(err) {
		t.Errorf("the error is %v", err)
	}
}

// TestNothingIsWrittenInPlainText watches all files that appear while a backup is made.
func TestNothingIsWrittenInPlainText(t *testing.T) {
	dir, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	watcher, err := fsnotify.NewBufferedWatcher(1000)
	must.NoError(t, err)
	must.NoError(t, watcher.Add(dir))
	must.NoError(t, watcher.Add(temporary))
	id := newIdentity(t)
	_, err = Directory{dir}.Write(t.Context(), "cp.backup", sourceOf(random(t)), []age.Recipient{id.Recipient()})
	must.NoError(t, err)
	must.NoError(t, watcher.Close())
	changes := 0
	for event := range watcher.Events {
		changes++
		if filepath.Dir(event.Name) != dir {
			t.Errorf("%s", event)
		}
		if data, err := os.ReadFile(event.Name); err == nil && !strings.HasPrefix(string(data), ageMagic) {
			t.Errorf("%s is not encrypted", event.Name)
		}
	}
	if changes == 0 {
		t.Error("inotify has seen no change")
	}
}

// random returns a snapshot that does not become smaller, and is larger than a part of an upload.
func random(t *testing.T) []byte {
	t.Helper()
	large, err := os.Open("/dev/urandom")
	must.NoError(t, err)
	defer large.Close()
	data := make([]byte, 3*uploadPart)
	_, err = io.ReadFull(large, data)
	must.NoError(t, err)
	return hashOf(data)
}
