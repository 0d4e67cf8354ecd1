package progress

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	l := NewLateLog(func() (io.WriteCloser, error) { return CreateLog(dir, "master", at(0)) })
	for _, e := range []step.Event{
		{At: at(0), Stage: -1, Step: "preflight", Kind: step.Started},
		{At: at(1), Stage: 0, Step: "find room on the disks", Kind: step.UpToDate},
	} {
		l.Event(e)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run that changes nothing made %s: %v", dir, err)
	}
	l.Event(step.Event{At: at(2), Stage: 1, Step: "start etcd", Kind: step.Started})
	l.Event(step.Event{
		At: at(3), Stage: 1, Step: "start etcd", Kind: step.Failed, Err: errors.New("start etcd: no image"),
	})
	l.Close()
	paths, err := filepath.Glob(filepath.Join(dir, "*-master.log"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil || strings.Count(string(text), "\n") != 2 ||
		!strings.HasSuffix(string(text), "] start etcd: no image\n") {
		t.Errorf("%v, log:\n%s", err, text)
	}
	if info, err := os.Stat(paths[0]); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestTheOldestLogsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for i := range keptLogs + 3 {
		file, err := CreateLog(dir, "turndown", at(float64(i)))
		must.NoError(t, err)
		file.Close()
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	oldest := at(3).UTC().Format("20060102T150405Z") + "-turndown.log"
	if err != nil || len(paths) != keptLogs || filepath.Base(paths[0]) != oldest {
		t.Errorf("%d logs, the oldest is %s, want %s (%v)", len(paths), filepath.Base(paths[0]), oldest, err)
	}
}

func TestALogThatCannotBeCreatedFailsNothing(t *testing.T) {
	l := NewLateLog(func() (io.WriteCloser, error) { return nil, errors.New("read-only file system") })
	l.Event(step.Event{At: at(0), Step: "start etcd", Kind: step.Started})
	l.Event(step.Event{At: at(1), Step: "start etcd", Kind: step.Done})
	l.Close()
}
