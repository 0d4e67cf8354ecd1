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
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// A program that is replaced gently is told to end, and is waited for.
func TestAReplacedProgramMayEnd(t *testing.T) {
	engine, err := Choice{}.Open()
	must.NoError(t, err)
	const image, name = "kube-bootstrap-test-stop:1", "kube-bootstrap-test-stop"
	must.NoError(t, engine.Images().Import(t.Context(), image, bytes.NewReader(make([]byte, 1024))))
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
		must.NoError(t, engine.Run(t.Context(), c))
		ready := func(context.Context) error { _, err := os.Stat(dir + "/ready"); return err }
		must.NoError(t, step.Until(step.WithLimit(t.Context(), time.Minute), ready, nil))
		c.Env = []string{"ANOTHER=1"}
		must.NoError(t, engine.Run(t.Context(), c))
		if _, err := os.Stat(dir + "/ended"); errors.Is(err, fs.ErrNotExist) == gentle {
			t.Errorf("stopped first %t: %v", gentle, err)
		}
		must.NoError(t, engine.Remove(t.Context(), name))
	}
}
