package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

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

// group looks at its duties, one after the other.
type group struct {
	*started
	list  atomic.Pointer[[]Duty]                  // set before the first event
	queue workqueue.TypedDelayingInterface[Event] // events to handle
	pause workqueue.TypedRateLimiter[string]      // between repairs, by step name
	waits map[string]patience                     // by step name
}

func newGroup(s *started) *group {
	return &group{
		started: s,
		queue:   workqueue.NewTypedDelayingQueue[Event](),
		pause:   workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstAgain, maxAgain),
		waits:   map[string]patience{},
	}
}

// run handles events until ctx ends.
func (g *group) run(ctx context.Context) {
	defer context.AfterFunc(ctx, g.queue.ShutDown)()
	for {
		events, ended := g.take()
		if ended {
			return
		}
		g.round(ctx, *g.list.Load(), events)
	}
}

// take waits for an event and returns all that have arrived.
func (g *group) take() (events Event, ended bool) {
	for events == 0 || g.queue.Len() > 0 {
		one, ended := g.queue.Get()
		if ended {
			return 0, true
		}
		g.queue.Done(one) // during the round, the same event arrives again
		events |= one
	}
	return events, false
}

// round looks at the duties of these events, in their order. A repair that fails ends the
// round, because the duties after it may need it.
func (g *group) round(ctx context.Context, list []Duty, events Event) {
	for _, d := range list {
		if d.On&events == 0 || g.in.anyDown(d.On) || ctx.Err() != nil {
			continue
		}
		if !g.look(ctx, d) {
			g.queue.AddAfter(events, lockedFor)
			return
		}
	}
}

// look reports false if a repair failed, so that the duties after it must wait.
func (g *group) look(ctx context.Context, d Duty) bool {
	found := (&step.Runner{}).Look(ctx, step.Plan{{d.Step}})[0]
	g.notes.tell(d.Step.Name, found.Err)
	switch {
	case step.IsUnanswered(found.Err):
		g.again(d, step.Diff{"look again"})
		return true
	case len(found.Diff) == 0:
		return true
	}
	if wait := g.waits[d.Step.Name].wait(found.Diff); wait > 0 {
		g.queue.AddAfter(d.On, wait)
		return true
	}
	return g.repair(ctx, d)
}

// repair applies a duty while it holds the lock, and reports false if that failed. Runner.Do
// checks the duty again, because a user's run may have changed the host meanwhile.
func (g *group) repair(ctx context.Context, d Duty) bool {
	held, release, err := g.lock.take(ctx)
	if errors.Is(err, host.ErrLocked) {
		g.queue.AddAfter(d.On, lockedFor)
		return true
	}
	if err != nil {
		g.notes.tell("take the lock", err)
		g.queue.AddAfter(d.On, maxAgain)
		return true
	}
	defer release()
	if groups, err := g.Duties(); err != nil || len(groups) == 0 {
		return true
	}
	begun := time.Now()
	changes, err := g.apply(held, d)
	switch {
	case len(changes) == 0 && err == nil:
		return true
	case err != nil && (held.Err() != nil || g.in.ended(ctx, d.On)):
		g.queue.AddAfter(d.On, lockedFor) // a user's run waits, this process ends, or the engine has stopped
		return true
	}
	g.again(d, changes)
	took := time.Since(begun).Seconds()
	g.notes.done(Repair{At: begun.UTC(), Step: d.Step.Name, Changes: changes, Seconds: took}, err)
	if err != nil {
		g.waits[d.Step.Name] = g.waits[d.Step.Name].afterFailure(time.Now())
	}
	return err == nil
}

// apply applies the step of a duty and returns what it has changed.
func (g *group) apply(held context.Context, d Duty) (changes step.Diff, err error) {
	s := d.Step
	s.Limit = d.repairLimit()
	limited, cancel := step.Limited(step.WithLimit(held, s.Limit))
	defer cancel()
	runner := step.Runner{Emit: func(e step.Event) {
		switch e.Kind {
		case step.Started:
			changes = e.Diff
		case step.Left:
			g.Log(e.Message)
		}
	}}
	err = runner.Do(limited, step.Plan{{s}})
	return changes, err
}

// again plans the next look at a duty after these changes, or after a look without an answer.
// The pauses grow while the changes are the same: a repair that is repeated does not help.
func (g *group) again(d Duty, changes step.Diff) {
	name, now := d.Step.Name, time.Now()
	if last := g.waits[name]; last.changes != changes.String() || now.Sub(last.next) > steady {
		g.pause.Forget(name)
	}
	pause := g.pause.When(name)
	g.waits[name] = patience{changes: changes.String(), next: now.Add(pause)}
	g.queue.AddAfter(d.On, pause)
}

// patience is the wait for the next repair of the same changes. Other changes are a new fault.
type patience struct {
	changes string
	next    time.Time
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
func (p patience) afterFailure(now time.Time) patience {
	p.others = now.Add(firstAgain)
	return p
}
