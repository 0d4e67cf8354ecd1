package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRecordLock starts another process, because a process does not exclude itself.
func TestRecordLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	called := 0
	do := func() error { called++; return nil }
	must.NoError(t, WithRecordLock(t.Context(), path, do))
	if called != 1 {
		t.Error("not called without the file")
	}
	must.NoError(t, os.WriteFile(path, nil, 0o600))
	must.NoError(t, WithRecordLock(t.Context(), path, do))
	if called != 2 {
		t.Error("not called with a free lock")
	}
	must.NoError(t, WithRecordLock(t.Context(), path, func() error {
		other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRecordLockOfOther$")
		other.Env = append(os.Environ(), "RECORD_LOCK="+path)
		if out, err := other.CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "another process holds the lock") {
			t.Errorf("the other process: %v\n%s", err, out)
		}
		return nil
	}))
}

// TestRecordLockOfOther is the other process of TestRecordLock.
func TestRecordLockOfOther(t *testing.T) {
	path := os.Getenv("RECORD_LOCK")
	if path == "" {
		return
	}
	ctx := step.WithLimit(context.Background(), 100*time.Millisecond)
	must.NoError(t, WithRecordLock(ctx, path, func() error { return nil }))
}
