//go:build root

package docker

import (
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
	const name = "kube-bootstrap-test-stop"
	engine, image := emptyImage(t, name)
	for _, gentle := range []bool{true, false} {
		dir := t.TempDir()
		c := Container{
			Name: name, Image: image, StopFirst: gentle,
			Mounts: append(programs(), Mount{Source: dir, Target: "/seen"}),
			Command: []string{
				"/bin/sh", "-c",
				"trap 'sleep 0.5; echo >/seen/ended; exit' TERM; echo >/seen/ready; while :; do sleep 0.1; done",
			},
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
