package docker

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// A program that is replaced gently is told to end, and is waited for.
func TestAReplacedProgramMayEnd(t *testing.T) {
	engine, err := Choice{}.Open()
	if err != nil {
		t.Fatal(err)
	}
	const image, name = "kube-bootstrap-test-stop:1", "kube-bootstrap-test-stop"
	if err := engine.Images().Import(t.Context(), image, bytes.NewReader(make([]byte, 1024))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Images().Remove(context.Background(), image) })
	t.Cleanup(func() { _ = engine.Remove(context.Background(), name) })
	for _, gentle := range []bool{true, false} {
		dir := t.TempDir()
		c := Container{
			Name: name, Image: image, StopFirst: gentle, Mounts: []Mount{{Source: dir, Target: "/seen"}},
			Command: []string{"/bin/sh", "-c", "trap 'sleep 0.5; echo >/seen/ended; exit' TERM; echo >/seen/ready; while :; do sleep 0.1; done"},
		}
		for _, programs := range []string{"/bin", "/lib", "/lib64", "/usr"} {
			c.Mounts = append(c.Mounts, Mount{Source: programs, Target: programs, ReadOnly: true})
		}
		if err := engine.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		ready := func(context.Context) error { _, err := os.Stat(dir + "/ready"); return err }
		if err := step.Until(step.WithLimit(t.Context(), time.Minute), ready, nil); err != nil {
			t.Fatal(err)
		}
		c.Env = []string{"ANOTHER=1"}
		if err := engine.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir + "/ended"); errors.Is(err, fs.ErrNotExist) == gentle {
			t.Errorf("stopped first %t: %v", gentle, err)
		}
		if err := engine.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}
