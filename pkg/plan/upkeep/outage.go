package upkeep

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// longOutage is the shortest outage of the control plane after which the kubelet
	// and kube-proxy are restarted. By then the watches of client-go pause for up to
	// a minute between two attempts, and the node controller soon marks the pods of
	// a host that is cut off as not Ready (after 50 s). A new kubelet lists its pods
	// at once, and a new kube-proxy the endpoints of Services.
	longOutage = 30 * time.Second
	// backoffReset is the time without a failure after which client-go pauses
	// briefly again. Until then the pauses of several short outages add up
	// (defaultBackoffReset of client-go).
	// https://github.com/kubernetes/client-go/blob/v0.37.2/tools/cache/reflector.go#L65
	backoffReset = 2 * time.Minute
	// restartSpread is the time over which the hosts of a cluster restart theirs, because all
	// restarted at once would keep the API server busy that has just come back. Time
	// during which the host is busy does not count.
	restartSpread = 5 * time.Second
)

type outages struct {
	mu     sync.Mutex
	recent []outage // the outages of the last backoffReset since the last long one
	last   time.Time
}

type outage struct {
	end      time.Time
	duration time.Duration
}

// note records an outage that ends now, and reports whether the recent ones were long together.
func (o *outages) note(now time.Time, duration time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	recent, total := []outage{{now, duration}}, duration
	for _, one := range o.recent {
		if now.Sub(one.end) < backoffReset {
			recent, total = append(recent, one), total+one.duration
		}
	}
	o.recent = recent
	if total < longOutage {
		return false
	}
	o.last, o.recent = now, nil // the new kubelet and kube-proxy pause briefly
	return true
}

// awaitTurn waits for the turn of this host in restartSpread.
func awaitTurn(ctx context.Context) error {
	turn, cancel := step.Limited(step.WithLimit(ctx, 1+rand.N(restartSpread)))
	defer cancel()
	<-turn.Done()
	return ctx.Err()
}

// end returns the end of the last long outage, the zero time if there was none.
func (o *outages) end() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}
