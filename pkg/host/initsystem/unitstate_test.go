package initsystem

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// A daemon that begins to stop closes its socket first.
func TestAwaitStopByTheSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "docker.sock")
	listener, err := net.Listen("unix", socket)
	must.NoError(t, err)
	stopped := make(chan bool)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() {
		AwaitStop(ctx, sysv, "docker", socket)
		close(stopped)
	}()
	must.NoError(t, listener.Close())
	if <-stopped; ctx.Err() != nil {
		t.Error("the stop was not noticed")
	}
}

func TestAwaitStopWithoutASignWaits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if AwaitStop(ctx, sysv, "docker", t.TempDir()); ctx.Err() == nil {
		t.Error("it did not wait")
	}
}
