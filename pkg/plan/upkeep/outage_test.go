package upkeep

import (
	"testing"
	"time"
)

func TestOnlyALongOutageCounts(t *testing.T) {
	var past outages
	if past.note(longOutage-time.Second) || !past.end().IsZero() {
		t.Error("a short outage was recorded")
	}
	before := time.Now()
	if !past.note(longOutage) || past.end().Before(before) {
		t.Errorf("a long outage ended at %s", past.end())
	}
}
