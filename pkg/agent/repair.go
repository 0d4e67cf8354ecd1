package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Repairer checks the duties of this host after events, and applies the step of
// each duty whose Check finds a difference.
type Repairer struct {
	Files host.Files
	// Duties returns the duties in force: none while they must not be touched.
	Duties func() ([]Duty, error)
	Lock   Lock
	Log    func(string)
}

// Lock takes the lock of this host in the background. The context that it
// returns ends when a run of a user waits for the lock.
type Lock func(context.Context) (held context.Context, release func(), err error)

// Inbox collects events until somebody looks at them.
type Inbox struct {
	mu      sync.Mutex
	pending Event
	down    Event // engines that do not run
	arrived Signal
}

// NewInbox returns an Inbox in which no engine is known to run, and everything
// is to be checked once.
func NewInbox() *Inbox { return &Inbox{pending: all, down: engines, arrived: NewSignal()} }

// Put adds events.
func (i *Inbox) Put(e Event) {
	i.mu.Lock()
	i.pending |= e
	i.mu.Unlock()
	i.arrived.Give()
}

// Up records whether an engine runs. One that has started is an event.
func (i *Inbox) Up(engine Event, runs bool) {
	i.mu.Lock()
	if runs {
		i.down &^= engine
	} else {
		i.down |= engine
	}
	i.mu.Unlock()
	if runs {
		i.Put(engine)
	}
}

// take returns the events since the last call, and the engines that are down.
func (i *Inbox) take() (events, down Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	events, i.pending = i.pending, 0
	return events, i.down
}

// ended reports whether one of the engines has ended. It leaves some time to
// hear of it.
func (i *Inbox) ended(ctx context.Context, among Event) bool {
	if among&engines == 0 {
		return false
	}
	sleep(ctx, settle, nil)
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.down&among != 0
}

// Run repairs until ctx ends.
func (r Repairer) Run(ctx context.Context, in *Inbox) error {
	go tick(ctx, in)
	state := rounds{Repairer: r, in: in, waits: map[string]patience{}, told: map[string]string{}}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-in.arrived:
			sleep(ctx, settle, nil)
			events, down := in.take()
			if again := state.round(ctx, events, down); again.events != 0 {
				time.AfterFunc(again.after, func() { in.Put(again.events) })
			}
		}
	}
	return nil
}

func tick(ctx context.Context, in *Inbox) {
	in.arrived.Give()
	for last := time.Now(); ctx.Err() == nil; {
		sleep(ctx, tickEvery, nil)
		if time.Since(last) >= allEvery {
			last = time.Now()
			in.Put(all)
		}
		in.Put(Tick)
	}
}

// rounds is what Run remembers from one round to the next.
type rounds struct {
	Repairer
	in     *Inbox
	duties []Duty
	waits  map[string]patience // by the name of the step
	told   map[string]string   // the last error of a step, which is logged once
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
func (r *rounds) round(ctx context.Context, events, down Event) retry {
	if events != Tick || r.duties == nil {
		duties, err := r.Duties()
		r.tell("read the settings", err)
		if err != nil {
			return retry{}
		}
		r.duties = duties
	}
	var again retry
	for _, d := range r.duties {
		if d.On&events == 0 || d.On&down != 0 || ctx.Err() != nil {
			continue
		}
		next := r.look(ctx, d)
		again = again.and(next)
		if next.failed {
			return again.and(retry{events: events, after: lockedFor})
		}
	}
	return again
}

// look checks one duty and repairs it if it does not hold.
func (r *rounds) look(ctx context.Context, d Duty) retry {
	ctx = step.WithLimit(ctx, cmp.Or(d.Limit, applyLimit))
	found := (&step.Runner{}).Look(ctx, step.Plan{{d.Step}})[0]
	r.tell(d.Step.Name, found.Err)
	if len(found.Diff) == 0 {
		return retry{}
	}
	if wait := r.waits[d.Step.Name].wait(found.Diff); wait > 0 {
		return retry{events: d.On, after: wait}
	}
	return r.repair(ctx, d)
}

// repair applies a duty under the lock. Do checks it again, because a run of a
// user may have changed the host meanwhile.
func (r *rounds) repair(ctx context.Context, d Duty) retry {
	held, release, err := r.Lock(ctx)
	if errors.Is(err, host.ErrLocked) {
		return retry{events: d.On, after: lockedFor}
	}
	if err != nil {
		r.tell("take the lock", err)
		return retry{events: d.On, after: maxAgain}
	}
	defer release()
	if duties, err := r.Duties(); err != nil || len(duties) == 0 {
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
	case err != nil && (held.Err() != nil || r.in.ended(ctx, d.On)):
		return retry{events: d.On, after: lockedFor} // a run waits, this process ends, or the engine has ended
	}
	r.waits[d.Step.Name] = r.waits[d.Step.Name].after(time.Now(), changes)
	r.done(Repair{At: begun.UTC(), Step: d.Step.Name, Changes: changes, Seconds: time.Since(begun).Seconds()}, err)
	return retry{events: d.On, after: time.Until(r.waits[d.Step.Name].next), failed: err != nil}
}

// done logs and records a repair.
func (r *rounds) done(repair Repair, err error) {
	if err != nil {
		repair.Error = err.Error()
		r.Log(fmt.Sprintf("repair failed: %v", err))
	} else {
		r.Log(fmt.Sprintf("repaired: %s: %s, in %.1fs", repair.Step, step.Diff(repair.Changes), repair.Seconds))
	}
	r.tell("record the repair", note(r.Files, repair))
}

// tell logs an error once, until it changes or ends.
func (r *rounds) tell(name string, err error) {
	switch {
	case err == nil:
		delete(r.told, name)
	case r.told[name] != err.Error():
		r.told[name] = err.Error()
		r.Log(fmt.Sprintf("%s: %v", name, err))
	}
}
