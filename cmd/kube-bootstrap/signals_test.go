package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestHangups: the end of an SSH session sends several. The first one ends the context, and no one
// ends this process. Under nohup they have no effect.
func TestHangups(t *testing.T) {
	ctx := untilSignal()
	for range 3 {
		must.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		if signal.Ignored(syscall.SIGHUP) {
			must.NoError(t, ctx.Err())
			continue
		}
		<-ctx.Done()
	}
}
