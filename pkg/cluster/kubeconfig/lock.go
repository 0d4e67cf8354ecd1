package kubeconfig

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// abandoned is the age of a lock file whose program was killed. A program holds the lock for milliseconds.
const abandoned = 10 * time.Second

// lockFile is the lock of a kubeconfig that kubectl uses too. It exists while a program has the lock.
// https://github.com/kubernetes/client-go/blob/v0.37.2/tools/clientcmd/loader.go#L472-L489
type lockFile struct {
	path  string
	seen  fs.FileInfo // of another program
	since time.Time   // of seen
}

// locked calls do while it has the lock of the kubeconfig at path.
func locked(ctx context.Context, path string, do func() error) error {
	lock := lockFile{path: path + ".lock"}
	limit := max(step.CheckLimit(ctx), 2*abandoned)
	err := step.Until(step.WithLimit(ctx, limit), func(context.Context) error { return lock.take() }, nil)
	if errors.Is(err, fs.ErrExist) {
		return &step.Problem{
			Name: "kubeconfig-locked", Text: "another program holds " + lock.path, Remedy: "remove it if none runs",
		}
	}
	if err != nil {
		return err
	}
	defer os.Remove(lock.path)
	return do()
}

func (l *lockFile) take() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_EXCL, 0)
	if errors.Is(err, fs.ErrExist) {
		l.removeAbandoned()
		return err
	}
	if err != nil {
		return step.Final(err)
	}
	return file.Close()
}

// removeAbandoned removes the lock if nobody has replaced it for a long time.
func (l *lockFile) removeAbandoned() {
	now, err := os.Stat(l.path)
	switch {
	case err != nil:
		l.seen = nil
	case l.seen == nil || !os.SameFile(l.seen, now) || !l.seen.ModTime().Equal(now.ModTime()):
		l.seen, l.since = now, time.Now()
	case time.Since(l.since) > abandoned:
		_ = os.Remove(l.path)
	}
}
