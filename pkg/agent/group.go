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

// group checks and repairs the duties of one group.
type group struct {
	in     *Inbox
	duties func() (Groups, error)
	lock   Lock
	notes  *notes
	waits  map[string]patience // by step name

	mu      sync.Mutex
	list    []Duty
	pending Event
	woken   Signal
}

// give adds events and sets the duties in force.
func (g *group) give(events Event, list []Duty) {
	g.mu.Lock()
	g.list, g.pending = list, g.pending|events
	g.mu.Unlock()
	g.woken.Give()
}

// again adds the events of a retry after its pause.
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

// retry lists the events to handle again, and after which pause.
type retry struct {
	events Event
	after  time.Duration
	failed bool // a repair failed, so the duties after it must wait
}

// and combines two retries, with the shorter pause.
func (r retry) and(other retry) retry {
	switch {
	case r.events == 0:
		return other
	case other.events == 0:
		return r
	}
	return retry{events: r.events | other.events, after: min(r.after, other.after)}
}

// round checks the duties for the events, in order.
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

// look checks one duty and repairs it if its Check finds a difference.
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

// repair applies a duty while it holds the lock. Runner.Do checks the duty
// again, because a user's run may have changed the host meanwhile.
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
		return retry{events: d.On, after: lockedFor} // a user's run waits, this process ends, or the engine has stopped
	}
	g.waits[d.Step.Name] = g.waits[d.Step.Name].after(time.Now(), changes)
	g.notes.done(Repair{At: begun.UTC(), Step: d.Step.Name, Changes: changes, Seconds: time.Since(begun).Seconds()}, err)
	return retry{events: d.On, after: time.Until(g.waits[d.Step.Name].next), failed: err != nil}
}
