package upkeep

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestTheTurnOfABusyHostComesLater(t *testing.T) {
	for part, most := range map[float64]time.Duration{0: restartSpread, 0.9: 10 * restartSpread} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx := step.WithBusy(t.Context(), func() time.Duration { return time.Duration(part * float64(time.Since(begun))) })
			if err := awaitTurn(ctx); err != nil || time.Since(begun) > most+time.Second {
				t.Errorf("%s, %v", time.Since(begun), err)
			}
		})
	}
}

func TestShortOutagesAddUp(t *testing.T) {
	var past outages
	begin := time.Now()
	for _, c := range []struct {
		at, duration time.Duration
		long         bool
	}{
		{0, longOutage - time.Second, false},
		{backoffReset + time.Second, longOutage / 2, false}, // the first one is forgotten
		{backoffReset + time.Minute, longOutage / 2, true},
		{backoffReset + 90*time.Second, time.Second, false}, // the restarted programs do not know the others
		{backoffReset + 100*time.Second, longOutage, true},
		{3 * backoffReset, time.Second, false},
		{4 * backoffReset, longOutage, true},
	} {
		at := begin.Add(c.at)
		if long := past.note(at, c.duration); long != c.long {
			t.Errorf("after %s: an outage of %s is long: %t", c.at, c.duration, long)
		}
		if c.long != past.end().Equal(at) {
			t.Errorf("after %s: the last long outage ended at %s", c.at, past.end().Sub(begin))
		}
	}
}
