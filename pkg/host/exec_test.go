package host

import (
	"context"
	"io"
	"testing"
	"time"
)

// A program that is left would keep the output open, and Run would wait for it.
func TestAGroupEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := Command{Args: []string{"/bin/sh", "-c", "sleep 600 & sleep 600; true"}, Stdout: io.Discard, Group: true}.Run(ctx)
	if took := time.Since(began); err == nil || took > time.Minute {
		t.Errorf("%v after %s", err, took)
	}
}
