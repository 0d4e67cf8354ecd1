package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Duty is a step that the agent may apply by itself, and the events after
// which it checks the step.
type Duty struct {
	Step  step.Step
	On    Event
	Limit time.Duration // of a repair, for which the next duties wait; 0: see repairLimit
}

// repairLimit returns the limit of a repair: a part of the limit of a step in a user's run,
// which the Check has.
func (d Duty) repairLimit() time.Duration {
	return cmp.Or(d.Limit, max(d.Step.Limit/repairPart, minRepairLimit))
}

const (
	settle    = 300 * time.Millisecond // the wait for further events of the same change
	tickEvery = 5 * time.Second
	allEvery  = 5 * time.Minute
	// legacyEvery is the interval of checks of iptables-legacy, which sends no
	// notifications.
	legacyEvery = 30 * time.Second
	lockedFor   = time.Second // the retry interval if another run holds the lock

	repairPart     = 10
	minRepairLimit = 30 * time.Second

	firstAgain = 2 * time.Second // the pause after the first repair by a step
	maxAgain   = time.Minute
	// steady is the time without a repair after which the pause starts again at
	// firstAgain.
	steady = 2 * time.Minute
)

// Groups maps a group to its duties. Groups run concurrently. The duties of a
// group run in order, because each may need the duties before it.
type Groups map[string][]Duty

// Compact drops duties whose step is excluded.
func (g Groups) Compact() Groups {
	for name, duties := range g {
		g[name] = slices.DeleteFunc(duties, func(d Duty) bool { return d.Step.Excluded() })
	}
	return g
}

// Within sets the limit of the steps, see Duty.repairLimit.
func (g Groups) Within(limit time.Duration) Groups {
	for _, duties := range g {
		for i := range duties {
			duties[i].Step.Limit = limit
		}
	}
	return g
}

type group struct {
	*started
	waits map[string]patience // by step name

	queue
	list atomic.Pointer[[]Duty] // set before the first event
}

func (g *group) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-g.arrived:
			events := g.take()
			if r := g.round(ctx, *g.list.Load(), events); r.events != 0 {
				time.AfterFunc(r.after, func() { g.Put(r.events) })
			}
		}
	}
}

// retry lists the events to handle again, and after which pause.
type retry struct {
	events Event
	after  time.Duration
	failed bool // a repair failed, so the duties after it must wait
}

func (r retry) and(other retry) retry {
	switch {
	case r.events == 0:
		return other
	case other.events == 0:
		return r
	}
	return retry{events: r.events | other.events, after: min(r.after, other.after)}
}

func (g *group) round(ctx context.Context, list []Duty, events Event) retry {
	var again retry
	for _, d := range list {
		if d.On&events == 0 || g.in.anyDown(d.On) || ctx.Err() != nil {
			continue
		}
		next := g.look(ctx, d)
		again = again.and(next)
		if next.failed {
			return again.and(retry{events: events, after: lockedFor})
		}
	}
	return again
}

func (g *group) look(ctx context.Context, d Duty) retry {
	found := (&step.Runner{}).Look(ctx, step.Plan{{d.Step}})[0]
	g.notes.tell(d.Step.Name, found.Err)
	switch {
	case step.IsUnanswered(found.Err):
		return g.again(d, step.Diff{"look again"})
	case len(found.Diff) == 0:
		return retry{}
	}
	if wait := g.waits[d.Step.Name].wait(found.Diff); wait > 0 {
		return retry{events: d.On, after: wait}
	}
	return g.repair(ctx, d)
}

// repair applies a duty while it holds the lock. Runner.Do checks the duty
// again, because a user's run may have changed the host meanwhile.
func (g *group) repair(ctx context.Context, d Duty) retry {
	held, release, err := g.lock.take(ctx)
	if errors.Is(err, host.ErrLocked) {
		return retry{events: d.On, after: lockedFor}
	}
	if err != nil {
		g.notes.tell("take the lock", err)
		return retry{events: d.On, after: maxAgain}
	}
	defer release()
	if groups, err := g.Duties(); err != nil || len(groups) == 0 {
		return retry{}
	}
	s := d.Step
	s.Limit = d.repairLimit()
	limited, cancel := step.Limited(step.WithLimit(held, s.Limit))
	defer cancel()
	begun := time.Now()
	var changes step.Diff
	runner := step.Runner{Emit: func(e step.Event) {
		switch e.Kind {
		case step.Started:
			changes = e.Diff
		case step.Left:
			g.Log(e.Message)
		}
	}}
	err = runner.Do(limited, step.Plan{{s}})
	switch {
	case len(changes) == 0 && err == nil:
		return retry{}
	case err != nil && (held.Err() != nil || g.in.ended(ctx, d.On)):
		return retry{events: d.On, after: lockedFor} // a user's run waits, this process ends, or the engine has stopped
	}
	next := g.again(d, changes)
	g.notes.done(Repair{At: begun.UTC(), Step: d.Step.Name, Changes: changes, Seconds: time.Since(begun).Seconds()}, err)
	next.failed = err != nil
	if next.failed {
		g.waits[s.Name] = g.waits[s.Name].afterFailure()
	}
	return next
}

// again returns the next look at a duty after these changes, or after a look without an answer.
func (g *group) again(d Duty, changes step.Diff) retry {
	g.waits[d.Step.Name] = g.waits[d.Step.Name].after(time.Now(), changes)
	return retry{events: d.On, after: time.Until(g.waits[d.Step.Name].next)}
}

// patience is the backoff between repairs of the same changes, because a
// repair that is repeated does not help. Other changes are a new fault.
type patience struct {
	changes string
	next    time.Time
	pause   time.Duration
	others  time.Time // before it, other changes wait too
}

func (p patience) wait(changes step.Diff) time.Duration {
	if p.changes != changes.String() {
		return time.Until(p.others)
	}
	return time.Until(p.next)
}

// afterFailure lets other changes wait too: another host can cause new ones again and again,
// for example with its lease, and the duties after this one have their turn in between.
func (p patience) afterFailure() patience {
	p.others = p.next.Add(firstAgain - p.pause)
	return p
}

// after returns the backoff after a repair of these changes that ended now.
func (p patience) after(now time.Time, changes step.Diff) patience {
	pause := min(max(2*p.pause, firstAgain), maxAgain)
	if p.changes != changes.String() || now.Sub(p.next) > steady {
		pause = firstAgain
	}
	return patience{changes: changes.String(), next: now.Add(pause), pause: pause}
}
