package balancer

import (
	"context"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// A pool without a server must not use the CPU that a starting server needs.
func TestPausesGrowWhileNoServerIsThere(t *testing.T) {
	p := newPool("", freePair(t), nil)
	p.use(t.Context(), []string{"127.0.0.1"})
	var pauses []time.Duration
	ctx, stop := context.WithCancel(t.Context())
	p.rest = func(_ context.Context, pause time.Duration) error {
		if pauses = append(pauses, pause); len(pauses) == 100 {
			stop()
		}
		return nil
	}
	must.NoError(t, p.serve(ctx, address("127.0.0.1", freePair(t))))
	if !slices.IsSorted(pauses) || pauses[0] != firstRetry || pauses[99] != maxRetry {
		t.Errorf("pauses %v", pauses)
	}
}

func TestPausesAreShortAgainAfterAServerWasThere(t *testing.T) {
	p := newPool("", freePair(t), nil)
	p.use(t.Context(), []string{"127.0.0.1"})
	at := address("127.0.0.1", freePair(t))
	ctx, stop := context.WithCancel(t.Context())
	var tries int
	after := make(chan time.Duration, 1)
	var served bool
	p.rest = func(_ context.Context, pause time.Duration) error {
		switch tries++; {
		case served:
			after <- pause
			stop()
		case tries == 10:
			b := listen(t, "127.0.0.1", p.port)
			served = true
			go useOnce(t, at, b)
		}
		return nil
	}
	must.NoError(t, p.serve(ctx, at))
	if pause := <-after; pause != firstRetry {
		t.Errorf("after a server was there: %s", pause)
	}
}

// useOnce connects by the pool, ends the server, and connects again, so that
// the pool notices.
func useOnce(t *testing.T, at string, b *backend) {
	dial := func() bool { c, err := net.Dial("tcp", at); return err == nil && c.Close() == nil }
	must.Until(t, "listen on "+at+" for port "+strconv.Itoa(b.Addr().(*net.TCPAddr).Port), dial)
	b.die()
	must.Until(t, "refuse again", func() bool { return !dial() })
}

func TestAnOutageIsReportedWhenItHasEnded(t *testing.T) {
	p := newPool("", freePair(t), nil)
	p.use(t.Context(), []string{"127.0.0.1"})
	at := address("127.0.0.1", freePair(t))
	ctx, stop := context.WithCancel(t.Context())
	var outages []time.Duration
	p.answers = func(outage time.Duration) {
		outages = append(outages, outage)
		stop()
	}
	b := listen(t, "127.0.0.1", p.port)
	began := time.Now()
	go func() {
		useOnce(t, at, b)
		listen(t, "127.0.0.1", p.port)
	}()
	must.NoError(t, p.serve(ctx, at))
	if len(outages) != 1 || outages[0] <= 0 || outages[0] > time.Since(began) {
		t.Errorf("reported outages: %v", outages)
	}
}
