package kubelet

import (
	"errors"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// TestNoOutageNeedsNoDocker: the zero time requires nothing, so that the step
// asks Docker only after an outage.
func TestNoOutageNeedsNoDocker(t *testing.T) {
	down := errors.New("Docker is down")
	c := ContainerIn(func() (*docker.Engine, error) { return nil, down })
	for end, want := range map[time.Time]error{{}: nil, time.Unix(1, 0): down} {
		diff, err := c.RestartAfter(func() time.Time { return end }).Check(t.Context())
		if len(diff) > 0 || !errors.Is(err, want) {
			t.Errorf("%s: got %q, %v", end, diff, err)
		}
	}
}
