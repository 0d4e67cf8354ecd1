package agent

import (
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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

// Duty is a step that the agent may apply by itself, and the events after
// which it checks the step.
type Duty struct {
	Step  step.Step
	On    Event
	Limit time.Duration // of a repair, during which a user's run waits; 0: applyLimit
}

const (
	settle    = 300 * time.Millisecond // the wait for further events of the same change
	tickEvery = 5 * time.Second
	allEvery  = 5 * time.Minute
	// legacyEvery is the interval of checks of iptables-legacy, which sends no
	// notifications.
	legacyEvery = 30 * time.Second
	lockedFor   = time.Second // the retry interval if another run holds the lock
	applyLimit  = 30 * time.Second
	firstAgain  = 2 * time.Second // the pause after the first repair by a step
	maxAgain    = time.Minute
	// steady is the time without a repair after which the pause starts again at
	// firstAgain.
	steady = 2 * time.Minute
)

// patience is the backoff between repairs of the same changes, because a
// repair that is repeated does not help. Other changes are a new fault.
type patience struct {
	changes string
	next    time.Time
	pause   time.Duration
}

// wait returns the remaining backoff for these changes.
func (p patience) wait(changes step.Diff) time.Duration {
	if p.changes != changes.String() {
		return 0
	}
	return time.Until(p.next)
}

// after returns the backoff after a repair of these changes that ended now.
func (p patience) after(now time.Time, changes step.Diff) patience {
	pause := min(max(2*p.pause, firstAgain), maxAgain)
	if p.changes != changes.String() || now.Sub(p.next) > steady {
		pause = firstAgain
	}
	return patience{changes: changes.String(), next: now.Add(pause), pause: pause}
}

// Groups maps a group to its duties. Groups run concurrently. The duties of a
// group run in order, because each may need the duties before it.
type Groups map[string][]Duty

// Compact drops duties without a step, as step.Plan.Compact does.
func (g Groups) Compact() Groups {
	for name, duties := range g {
		g[name] = slices.DeleteFunc(duties, func(d Duty) bool { return d.Step.Name == "" })
	}
	return g
}
