package agent

import (
	"context"
	"sync"
	"time"
)

// Event is a set of kinds of events.
type Event uint16

// The kinds of events after which a duty is checked. MainDocker,
// BootstrapDocker and Containerd also occur when that engine has started.
// While it does not run, its duties are skipped.
const (
	MainDocker      Event = 1 << iota // an image, or a container of kube-bootstrap, in the main Docker
	BootstrapDocker                   // the same in the bootstrap Docker
	Containerd                        // an image for pods was removed
	Link                              // a link or an address
	Route
	Forwarding // or another setting of net.ipv4.conf
	Firewall   // an nftables rule was removed
	Lease      // a lease of a subnet in etcd
	Files      // a file in a watched directory: CNI plugins, subnet.env
	Cluster    // nodes and control planes, on a control plane; a rotation
	API        // an API server answers after a long outage
	Tick       // every five seconds, for changes without notifications; the Check must be cheap

	all = ^Event(0)
)

// engines are the events whose source may be down.
const engines = MainDocker | BootstrapDocker | Containerd

// Inbox collects events until take is called.
type Inbox struct {
	mu      sync.Mutex
	pending Event
	down    Event // engines that do not run
	arrived Signal
}

// NewInbox returns an Inbox with all events pending and all engines down.
func NewInbox() *Inbox { return &Inbox{pending: all, down: engines, arrived: NewSignal()} }

// Put adds events.
func (i *Inbox) Put(e Event) {
	i.mu.Lock()
	i.pending |= e
	i.mu.Unlock()
	i.arrived.Give()
}

// Up records whether an engine runs. A start is also an event.
func (i *Inbox) Up(engine Event, runs bool) {
	i.mu.Lock()
	i.down |= engine
	if runs {
		i.down &^= engine
		i.pending |= engine
		i.arrived.Give()
	}
	i.mu.Unlock()
}

func (i *Inbox) take() Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	events := i.pending
	i.pending = 0
	return events
}

func (i *Inbox) anyDown(among Event) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.down&among != 0
}

// ended waits for the notification that an engine has stopped.
func (i *Inbox) ended(ctx context.Context, among Event) bool {
	if among&engines == 0 {
		return false
	}
	sleep(ctx, settle, nil)
	return i.anyDown(among)
}

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
