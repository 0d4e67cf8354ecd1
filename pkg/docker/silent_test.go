package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestNoAnswerIsNoDifference: an engine that is silent, or that was killed and
// left its socket, may run the container. Only without a socket is it certain
// that the container does not run.
func TestNoAnswerIsNoDifference(t *testing.T) {
	dir := t.TempDir()
	silent, err := net.Listen("unix", filepath.Join(dir, "silent"))
	must.NoError(t, err)
	defer silent.Close()
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "killed")})
	must.NoError(t, err)
	killed.SetUnlinkOnClose(false)
	killed.Close()
	for socket, known := range map[string]bool{"silent": false, "killed": false, "absent": true} {
		engine := Open(filepath.Join(dir, socket))
		limit := time.Minute // the others answer at once
		if socket == "silent" {
			limit = 200 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if diff, err := engine.Running(ctx, Container{Name: "etcd"}); known != (len(diff) > 0) ||
			known == step.IsUnanswered(err) {
			t.Errorf("%s: container: %v, %v", socket, diff, err)
		}
		if _, err := engine.Images().Has(ctx, "etcd:1"); known == step.IsUnanswered(err) {
			t.Errorf("%s: image: %v", socket, err)
		}
		if _, _, err := engine.StartedAt(ctx, "etcd"); known == step.IsUnanswered(err) {
			t.Errorf("%s: start: %v", socket, err)
		}
		if err := engine.Answers(ctx); err == nil || (socket == "silent") != step.IsUnanswered(err) {
			t.Errorf("%s: %v", socket, err)
		}
	}
}

// TestImagesForASilentEngine: the first engine accepts an archive and never
// answers, the second engine does not even read it.
func TestImagesForASilentEngine(t *testing.T) {
	const limit = 100 * time.Millisecond
	for name, reads := range map[string]bool{"reads": true, "does not read": false} {
		socket := filepath.Join(t.TempDir(), "silent")
		listener, err := net.Listen("unix", socket)
		must.NoError(t, err)
		defer listener.Close()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				if reads {
					go func() { _, _ = io.Copy(io.Discard, conn) }()
				}
			}
		}()
		engine := Open(socket)
		ctx := step.WithLimit(t.Context(), limit)
		for what, err := range map[string]error{
			"load":   engine.Images().Load(ctx, io.LimitReader(zeros{}, 1<<20)),
			"save":   engine.Images().Save(ctx, io.Discard, "x:1"),
			"import": engine.Images().Import(ctx, "x:1", io.LimitReader(zeros{}, 1<<20)),
		} {
			if err == nil || !strings.Contains(err.Error(), "is silent for 100ms") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

// TestRemovalByASilentEngine: the removal after an interrupt ends, too.
func TestRemovalByASilentEngine(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "silent")
	listener, err := net.Listen("unix", socket) // nobody accepts
	must.NoError(t, err)
	defer listener.Close()
	interrupted, cancel := context.WithCancel(step.WithLimit(t.Context(), 50*time.Millisecond))
	cancel()
	if err := Open(socket).Discard(interrupted, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
