package agent

import (
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Event is a set of kinds of events.
type Event uint16

// The kinds of events after which a duty is checked. Those of the three engines
// include that the engine has started: while it does not run, a duty of it is
// left out.
const (
	MainDocker      Event = 1 << iota // an image, or a container of kube-bootstrap, in the main Docker
	BootstrapDocker                   // the same in the bootstrap Docker
	Containerd                        // an image of pods was removed
	Link                              // a link or an address
	Route
	Forwarding // or another setting below net.ipv4.conf
	Firewall   // rules of nftables were removed
	Lease      // a subnet of a host, in etcd
	Files      // a file in a directory that is watched: the CNI plugins, this host's subnet
	Cluster    // the nodes and control planes, on a control plane
	API        // an API server answers after a long outage
	Tick       // every few seconds, for what nothing reports; the Check must cost next to nothing

	all = ^Event(0)
)

// engines are the events whose source may be down.
const engines = MainDocker | BootstrapDocker | Containerd

// Duty is a step that the agent may apply by itself, with the events that may
// have undone it.
type Duty struct {
	Step  step.Step
	On    Event
	Limit time.Duration // of a repair, which keeps a user's run waiting; 0: applyLimit
}

const (
	settle    = 300 * time.Millisecond // events come in groups
	tickEvery = 5 * time.Second
	allEvery  = 5 * time.Minute
	// legacyEvery is the period of looks at a firewall that reports nothing.
	legacyEvery = 30 * time.Second
	lockedFor   = time.Second // until the next look at a lock that another run holds
	applyLimit  = 30 * time.Second
	firstAgain  = 2 * time.Second // between two repairs by one step
	maxAgain    = time.Minute
	// steady is how long a step must hold until its next repair is the first again.
	steady = 2 * time.Minute
)

// patience says when a step may be applied next: the pauses between repairs of
// the same changes grow, because a repair that is needed again and again does
// not help. Other changes are another fault.
type patience struct {
	changes string
	next    time.Time
	pause   time.Duration
}

// wait returns how long the same changes must not be repaired again.
func (p patience) wait(changes step.Diff) time.Duration {
	if p.changes != changes.String() {
		return 0
	}
	return time.Until(p.next)
}

// after returns the patience after a repair of changes that ended now.
func (p patience) after(now time.Time, changes step.Diff) patience {
	pause := min(max(2*p.pause, firstAgain), maxAgain)
	if p.changes != changes.String() || now.Sub(p.next) > steady {
		pause = firstAgain
	}
	return patience{changes: changes.String(), next: now.Add(pause), pause: pause}
}

// Groups are duties by the name of their group. Groups run at the same time. The
// duties of a group run in their order, because each may need the ones before it.
type Groups map[string][]Duty

// Compact drops duties without a step, as step.Plan.Compact does.
func (g Groups) Compact() Groups {
	for name, duties := range g {
		g[name] = slices.DeleteFunc(duties, func(d Duty) bool { return d.Step.Name == "" })
	}
	return g
}
