package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Events is a set of kinds of events.
type Events uint16

// The kinds of events after which a reconciler is checked. MainDocker,
// BootstrapDocker and Containerd also occur when that engine has started.
// While it does not run, its reconcilers are skipped.
const (
	MainDocker      Events = 1 << iota // an image, or a container of kube-bootstrap, in the main Docker
	BootstrapDocker                    // the same in the bootstrap Docker
	Containerd                         // an image for pods was removed
	Link                               // a link or an address
	Route
	Forwarding // or another setting of net.ipv4.conf
	Firewall   // an nftables rule was removed
	Lease      // a lease of a subnet in etcd
	Files      // a file in a watched directory: CNI plugins, subnet.env
	Cluster    // nodes and control planes, on a control plane; a rotation
	API        // an API server answers after a long outage
	Tick       // every five seconds, for changes without notifications; the Check must be cheap

	all = ^Events(0)
)

// engines are the events whose source may be down.
const engines = MainDocker | BootstrapDocker | Containerd

// Inbox collects the events of all groups, and which engines run.
type Inbox struct {
	pending atomic.Uint32 // an Event
	arrived Signal
	down    atomic.Uint32 // an Event: engines that do not run
}

// NewInbox returns an Inbox with all events pending and all engines down.
func NewInbox() *Inbox {
	in := &Inbox{arrived: NewSignal()}
	in.Put(all)
	in.down.Store(uint32(engines))
	return in
}

// Put adds events.
func (i *Inbox) Put(e Events) {
	i.pending.Or(uint32(e))
	i.arrived.Give()
}

func (i *Inbox) take() Events { return Events(i.pending.Swap(0)) }

// Up records whether an engine runs. A start is also an event.
func (i *Inbox) Up(engine Events, runs bool) {
	if !runs {
		i.down.Or(uint32(engine))
		return
	}
	i.down.And(^uint32(engine))
	i.Put(engine)
}

func (i *Inbox) anyDown(among Events) bool { return i.down.Load()&uint32(among) != 0 }

// ended waits for the notification that an engine has stopped.
func (i *Inbox) ended(ctx context.Context, among Events) bool {
	if among&engines == 0 {
		return false
	}
	_ = step.Pause(ctx, settle)
	return i.anyDown(among)
}

func (i *Inbox) tick(ctx context.Context) {
	for last := time.Now(); ctx.Err() == nil; {
		_ = step.Pause(ctx, tickEvery)
		if time.Since(last) >= allEvery {
			last = time.Now()
			i.Put(all)
		}
		i.Put(Tick)
	}
}
