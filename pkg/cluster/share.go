package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// sameFile reports whether the two are one file, or a copy of it: same size
// and time, as linkOrCopy leaves them.
func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if errA != nil || errB != nil {
		return false
	}
	return os.SameFile(x, y) || x.Size() == y.Size() && x.ModTime().Equal(y.ModTime())
}

// linkOrCopy makes to another name of from, or a copy where the two lie on
// different file systems. A reader of to sees the old file or the new one.
func linkOrCopy(ctx context.Context, from, to string) error {
	temporary := to + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if os.Link(real, temporary) != nil {
		if err := copyFile(ctx, real, temporary); err != nil {
			return err
		}
	}
	return os.Rename(temporary, to)
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	counted := &counter{from: in, report: func(n int64) { step.Report(ctx, "copy "+from, n, info.Size()) }}
	_, err = io.Copy(out, counted)
	return errors.Join(err, out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// lockCache keeps two runs from making the same thing of the cache.
func (f *fleet) lockCache(ctx context.Context, name string) (func(), error) {
	if err := os.MkdirAll(f.CacheDir, 0o755); err != nil {
		return nil, err
	}
	return host.WaitLock(ctx, filepath.Join(f.CacheDir, "."+name+".lock"), name)
}

// oneByOne makes a callback that hosts can call side by side.
func oneByOne(emit func(Event)) func(Event) {
	var mu sync.Mutex
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(e)
	}
}
