package agent

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// group looks after the duties of one group, and knows what it did before.
type group struct {
	in     *Inbox
	duties func() (Groups, error)
	lock   Lock
	notes  *notes
	waits  map[string]patience // by the name of the step

	mu      sync.Mutex
	list    []Duty
	pending Event
	woken   Signal
}

// give tells the group what has happened, and its duties in force.
func (g *group) give(events Event, list []Duty) {
	g.mu.Lock()
	g.list, g.pending = list, g.pending|events
	g.mu.Unlock()
	g.woken.Give()
}

// again gives events that the group has seen, once more after a while.
func (g *group) again(r retry) {
	time.AfterFunc(r.after, func() {
		g.mu.Lock()
		g.pending |= r.events
		g.mu.Unlock()
		g.woken.Give()
	})
}

func (g *group) take() (list []Duty, events Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	events, g.pending = g.pending, 0
	return g.list, events
}

func (g *group) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-g.woken:
			list, events := g.take()
			if r := g.round(ctx, list, events); r.events != 0 {
				g.again(r)
			}
		}
	}
}

// retry says which events must be looked at again, and when.
type retry struct {
	events Event
	after  time.Duration
	failed bool // a repair failed: what comes after it may need it
}

// and joins two retries: at the earlier time.
func (r retry) and(other retry) retry {
	switch {
	case r.events == 0:
		return other
	case other.events == 0:
		return r
	}
	return retry{events: r.events | other.events, after: min(r.after, other.after)}
}

// round checks the duties that the events concern, in their order.
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

// look checks one duty and repairs it if it does not hold.
func (g *group) look(ctx context.Context, d Duty) retry {
	ctx = step.WithLimit(ctx, cmp.Or(d.Limit, applyLimit))
	found := (&step.Runner{}).Look(ctx, step.Plan{{d.Step}})[0]
	g.notes.tell(d.Step.Name, found.Err)
	if len(found.Diff) == 0 {
		return retry{}
	}
	if wait := g.waits[d.Step.Name].wait(found.Diff); wait > 0 {
		return retry{events: d.On, after: wait}
	}
	return g.repair(ctx, d)
}

// repair applies a duty under the lock. Do checks it again, because a run of a
// user may have changed the host meanwhile.
func (g *group) repair(ctx context.Context, d Duty) retry {
	held, release, err := g.lock(ctx)
	if errors.Is(err, host.ErrLocked) {
		return retry{events: d.On, after: lockedFor}
	}
	if err != nil {
		g.notes.tell("take the lock", err)
		return retry{events: d.On, after: maxAgain}
	}
	defer release()
	if groups, err := g.duties(); err != nil || len(groups) == 0 {
		return retry{}
	}
	limited, cancel := step.Limited(held)
	defer cancel()
	begun := time.Now()
	var changes step.Diff
	runner := step.Runner{Emit: func(e step.Event) {
		if e.Kind == step.Started {
			changes = e.Diff
		}
	}}
	err = runner.Do(limited, step.Plan{{d.Step}})
	switch {
	case len(changes) == 0 && err == nil:
		return retry{}
	case err != nil && (held.Err() != nil || g.in.ended(ctx, d.On)):
		return retry{events: d.On, after: lockedFor} // a run waits, this process ends, or the engine has ended
	}
	g.waits[d.Step.Name] = g.waits[d.Step.Name].after(time.Now(), changes)
	g.notes.done(Repair{At: begun.UTC(), Step: d.Step.Name, Changes: changes, Seconds: time.Since(begun).Seconds()}, err)
	return retry{events: d.On, after: time.Until(g.waits[d.Step.Name].next), failed: err != nil}
}
