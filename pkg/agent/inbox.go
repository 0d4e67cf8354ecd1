package agent

import (
	"context"
	"sync"
	"time"
)

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

// take returns the events since the last call.
func (i *Inbox) take() Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	events := i.pending
	i.pending = 0
	return events
}

// anyDown reports whether one of the engines among these events does not run.
func (i *Inbox) anyDown(among Event) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.down&among != 0
}

// ended reports whether one of the engines has ended. It leaves some time to
// hear of it.
func (i *Inbox) ended(ctx context.Context, among Event) bool {
	if among&engines == 0 {
		return false
	}
	sleep(ctx, settle, nil)
	return i.anyDown(among)
}

// tick puts what is checked after a time into the inbox.
func (i *Inbox) tick(ctx context.Context) {
	i.arrived.Give()
	for last := time.Now(); ctx.Err() == nil; {
		sleep(ctx, tickEvery, nil)
		if time.Since(last) >= allEvery {
			last = time.Now()
			i.Put(all)
		}
		i.Put(Tick)
	}
}
