package filesystem

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestAwait(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "open")
	exists := func() (bool, error) {
		_, err := os.Lstat(path)
		return err == nil, nil
	}
	looked := make(chan struct{}, 1)
	found := make(chan error, 1)
	go func() {
		found <- Await(t.Context(), dir, func() (bool, error) {
			select {
			case looked <- struct{}{}:
			default:
			}
			return exists()
		})
	}()
	<-looked
	must.NoError(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o600))
	must.NoError(t, os.WriteFile(path, nil, 0o600))
	must.NoError(t, <-found)
	must.NoError(t, os.Remove(path))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Await(ctx, dir, exists); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait for a file that does not exist ended with %v", err)
	}
	never := errors.New("never")
	if err := Await(t.Context(), filepath.Join(dir, "missing"),
		func() (bool, error) { return false, never }); !errors.Is(err, never) {
		t.Errorf("got %v, want the error of done", err)
	}
}
