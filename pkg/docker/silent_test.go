package docker

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// TestNoAnswerIsNoDifference: an engine that is silent, or that was killed and
// left its socket, may run the container. Only without a socket is it certain
// that the container does not run.
func TestNoAnswerIsNoDifference(t *testing.T) {
	dir := t.TempDir()
	silent, err := net.Listen("unix", filepath.Join(dir, "silent"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "killed")})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	killed.Close()
	for socket, known := range map[string]bool{"silent": false, "killed": false, "absent": true} {
		engine, err := Open(filepath.Join(dir, socket))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if diff, err := engine.Running(ctx, Container{Name: "etcd"}); known != (len(diff) > 0) || known == step.IsUnanswered(err) {
			t.Errorf("%s: container: %v, %v", socket, diff, err)
		}
		if _, err := engine.HasImage(ctx, "etcd:1"); known == step.IsUnanswered(err) {
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
