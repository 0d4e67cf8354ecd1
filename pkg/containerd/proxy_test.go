package containerd

import (
	"errors"
	"testing"
	"time"
)

func TestASlowKubeProxyGetsMoreTime(t *testing.T) {
	failed, starts := errors.New("not within 30s"), proxyStarts
	for _, want := range []time.Duration{
		20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute, 2 * time.Minute,
	} {
		if starts = nextStarts(starts, failed); starts != want {
			t.Errorf("got %s, want %s", starts, want)
		}
	}
	if starts = nextStarts(starts, nil); starts != proxyStarts {
		t.Errorf("after a repair: %s", starts)
	}
}
