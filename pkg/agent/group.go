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

// Reconciler is a step that the agent may apply by itself, and the events after
// which it checks the step.
type Reconciler struct {
	Step  step.Step
	On    Events
	Limit time.Duration // of a repair, for which the next reconcilers wait; 0: see repairLimit
}

// repairLimit returns the limit of a repair: a part of the limit of a step in a user's run,
// which the Check has.
func (d Reconciler) repairLimit() time.Duration {
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

// Groups maps a group to its reconcilers. Groups run concurrently. The reconcilers of a
// group run in order, because each may need the reconcilers before it.
type Groups map[string][]Reconciler

// Compact drops reconcilers whose step is excluded.
func (g Groups) Compact() Groups {
	for name, reconcilers := range g {
		g[name] = slices.DeleteFunc(reconcilers, func(d Reconciler) bool { return d.Step.Excluded() })
	}
	return g
}

// Within sets the limit of the steps, see Duty.repairLimit.
func (g Groups) Within(limit time.Duration) Groups {
	for _, reconcilers := range g {
		for i := range reconcilers {
			reconcilers[i].Step.Limit = limit
		}
	}
	return g
}

// group checks its reconcilers, one after the other.
type group struct {
	*dispatcher
	list     atomic.Pointer[[]Reconciler]             // set before the first event
	queue    workqueue.TypedDelayingInterface[Events] // events to handle
	pause    workqueue.TypedRateLimiter[string]       // between repairs, by step name
	backoffs map[string]backoff                       // by step name
}

func newGroup(s *dispatcher) *group {
	return &group{
		dispatcher: s,
		queue:      workqueue.NewTypedDelayingQueue[Events](),
		pause:      workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstAgain, maxAgain),
		backoffs:   map[string]backoff{},
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
func (g *group) take() (events Events, ended bool) {
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

// round checks the reconcilers of these events, in their order. A repair that fails ends the
// round, because the reconcilers after it may need it.
func (g *group) round(ctx context.Context, list []Reconciler, events Events) {
	for _, d := range list {
		if d.On&events == 0 || g.in.anyDown(d.On) || ctx.Err() != nil {
			continue
		}
		if !g.check(ctx, d) {
			g.queue.AddAfter(events, lockedFor)
			return
		}
	}
}

// check reports false if a repair failed, so that the reconcilers after it must wait.
func (g *group) check(ctx context.Context, d Reconciler) bool {
	found := (&step.Runner{}).Check(ctx, step.Plan{{d.Step}})[0]
	g.recorder.logError(d.Step.Name, found.Err)
	switch {
	case step.IsUnanswered(found.Err):
		g.recheckLater(d, step.Diff{"check again"})
		return true
	case len(found.Diff) == 0:
		return true
	}
	if wait := g.backoffs[d.Step.Name].wait(found.Diff); wait > 0 {
		g.queue.AddAfter(d.On, wait)
		return true
	}
	return g.repair(ctx, d)
}

// repair applies a reconciler while it holds the lock, and reports false if that failed. Runner.Do
// checks the reconciler again, because a user's run may have changed the host meanwhile.
func (g *group) repair(ctx context.Context, d Reconciler) bool {
	held, release, err := g.lock.take(ctx)
	if errors.Is(err, host.ErrLocked) {
		g.queue.AddAfter(d.On, lockedFor)
		return true
	}
	if err != nil {
		g.recorder.logError("take the lock", err)
		g.queue.AddAfter(d.On, maxAgain)
		return true
	}
	defer release()
	if groups, err := g.Reconcilers(); err != nil || len(groups) == 0 {
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
	g.recheckLater(d, changes)
	took := time.Since(begun).Seconds()
	g.recorder.record(Repair{At: begun.UTC(), Step: d.Step.Name, Changes: changes, Seconds: took}, err)
	if err != nil {
		g.backoffs[d.Step.Name] = g.backoffs[d.Step.Name].afterFailure(time.Now())
	}
	return err == nil
}

// apply applies the step of a reconciler and returns what it has changed.
func (g *group) apply(held context.Context, d Reconciler) (changes step.Diff, err error) {
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

// recheckLater plans the next check of a reconciler after these changes, or after a check without an answer.
// The pauses grow while the changes are the same: a repair that is repeated does not help.
func (g *group) recheckLater(d Reconciler, changes step.Diff) {
	name, now := d.Step.Name, time.Now()
	if last := g.backoffs[name]; last.changes != changes.String() || now.Sub(last.next) > steady {
		g.pause.Forget(name)
	}
	pause := g.pause.When(name)
	g.backoffs[name] = backoff{changes: changes.String(), next: now.Add(pause)}
	g.queue.AddAfter(d.On, pause)
}

// backoff is the wait for the next repair of the same changes. Other changes are a new fault.
type backoff struct {
	changes string
	next    time.Time
	others  time.Time // before it, other changes wait too
}

func (p backoff) wait(changes step.Diff) time.Duration {
	if p.changes != changes.String() {
		return time.Until(p.others)
	}
	return time.Until(p.next)
}

// afterFailure lets other changes wait too: another host can cause new ones again and again,
// for example with its lease, and the reconcilers after this one have their turn in between.
func (p backoff) afterFailure(now time.Time) backoff {
	p.others = now.Add(firstAgain)
	return p
}
