package progress

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// transfer follows the bytes of a step: how many, how fast, how long yet.
type transfer struct {
	bytes, total int64
	rate         float64 // bytes a second, of the last few seconds; 0: not known
	at           time.Time
}

// settle is the time over which the rate is averaged.
const settle = 5 * time.Second

// update takes the numbers of an event, if it has any. The bytes of the first event
// were transferred before and do not count for the rate.
func (t *transfer) update(e step.Event) {
	if e.Bytes == 0 && e.Total == 0 {
		return
	}
	passed := e.At.Sub(t.at)
	switch {
	case t.at.IsZero() || e.Bytes < t.bytes:
		t.at, t.rate = e.At, 0
	case passed > 0:
		now := float64(e.Bytes-t.bytes) / passed.Seconds()
		weight := 1 - math.Exp(-passed.Seconds()/settle.Seconds())
		if t.rate == 0 {
			weight = 1
		}
		t.rate += weight * (now - t.rate)
		t.at = e.At
	default:
		return // the next event counts these bytes too
	}
	t.bytes, t.total = e.Bytes, e.Total
}

// left returns the remaining time; ok is false if it is unknown.
func (t transfer) left() (time.Duration, bool) {
	if t.rate < 1 || t.total <= t.bytes {
		return 0, false
	}
	return time.Duration(float64(t.total-t.bytes) / t.rate * float64(time.Second)), true
}

// String says it in words: "12 of 130 MB, 3.4 MB/s, 35s left".
func (t transfer) String() string {
	text := Amount(t.bytes, t.total)
	if t.rate >= 1 && t.bytes != t.total {
		text += ", " + speed(t.rate)
	}
	if left, ok := t.left(); ok {
		text += ", " + remaining(left)
	}
	return text
}

// remaining says how long a transfer still takes. The estimate of a long one is vague.
func remaining(left time.Duration) string {
	switch {
	case left >= 24*time.Hour:
		return "more than a day left"
	case left >= time.Hour:
		return strings.TrimSuffix(left.Round(time.Minute).String(), "0s") + " left"
	}
	return left.Round(time.Second).String() + " left"
}

// words returns descriptions of a transfer's progress, the most detailed first.
func (t transfer) words() []string {
	if t.bytes == 0 && t.total == 0 {
		return nil
	}
	all := []string{t.String(), Amount(t.bytes, t.total)}
	if left, ok := t.left(); ok {
		all = []string{t.String(), all[1] + ", " + remaining(left), all[1]}
	}
	if t.total > 0 {
		all = append(all, fmt.Sprintf("%d%%", min(t.bytes, t.total)*100/t.total))
	}
	return all
}

func speed(rate float64) string {
	if rate < 1e6 {
		return fmt.Sprintf("%.0f kB/s", rate/1e3)
	}
	return fmt.Sprintf("%.1f MB/s", rate/1e6)
}

// transfers are those of one stage.
type transfers struct {
	stage int
	steps map[string]transfer
}

// Event updates the transfer of a step, and returns it; the zero transfer if it has none.
func (a *transfers) Event(e step.Event) transfer {
	if a.steps == nil || e.Stage != a.stage {
		a.stage, a.steps = e.Stage, map[string]transfer{}
	}
	t := a.steps[e.Step]
	switch e.Kind {
	case step.Progress:
		t.update(e)
	case step.Done:
		t.bytes, t.rate = t.total, 0
	}
	a.steps[e.Step] = t
	return t
}

// sum is what they are together; ok if there are several.
func (a *transfers) sum() (all transfer, ok bool) {
	n := 0
	for _, t := range a.steps {
		if t.total > 0 {
			n++
			all.bytes, all.total, all.rate = all.bytes+t.bytes, all.total+t.total, all.rate+t.rate
		}
	}
	return all, n > 1
}
