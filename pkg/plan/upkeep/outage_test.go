package upkeep

import (
	"testing"
	"time"
)

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
		{backoffReset + 90*time.Second, time.Second, true},
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
