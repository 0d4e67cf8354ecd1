package agent

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// startPause is the pause between two looks at an engine that sends no signal.
const startPause = 2 * time.Second

var changes = map[kernel.Change]Events{
	kernel.LinkChanged: Link, kernel.RouteChanged: Route,
	kernel.ForwardingChanged: Forwarding, kernel.RulesRemoved: Firewall,
}

// WatchKernel puts what the kernel reports by netlink into the inbox.
func WatchKernel(ctx context.Context, in *Inbox, failed func(error)) {
	put := func(c kernel.Change) { in.Put(changes[c]) }
	go Forever(ctx, func(ctx context.Context) error { return kernel.WatchFirewall(ctx, put) }, failed)
	go pollLegacyFirewall(ctx, in)
	Forever(ctx, func(ctx context.Context) error { return kernel.WatchNetwork(ctx, put) }, failed)
}

// pollLegacyFirewall: the kernel reports no changes of the older iptables.
func pollLegacyFirewall(ctx context.Context, in *Inbox) {
	for ctx.Err() == nil {
		_ = step.Pause(ctx, legacyEvery)
		if netfilter.HasLegacyRules() {
			in.Put(Firewall)
		}
	}
}

// WatchedEngine is a daemon of this host that reports events.
type WatchedEngine struct {
	Event Events // MainDocker, BootstrapDocker or Containerd
	// Unit is a service that a connection would start. The engine is followed
	// only while it is active. Empty: a connection starts nothing.
	Unit string
	// Socket is what that service listens on.
	Socket string
	// Follow calls up once the engine answers, and changed with each of its
	// events, until ctx or the engine ends.
	Follow func(ctx context.Context, up, changed func()) error
}

// Watch puts the events of the engine into the inbox.
func (e WatchedEngine) Watch(ctx context.Context, units initsystem.Units, in *Inbox) {
	for ctx.Err() == nil {
		if e.mayConnect(ctx, units) {
			e.follow(ctx, units, in)
			in.Up(e.Event, false)
		}
		e.awaitStart(ctx, units)
	}
}

func (e WatchedEngine) awaitStart(ctx context.Context, units initsystem.Units) {
	ctx, cancel := context.WithTimeout(ctx, startPause) //nolint:forbidigo // pause between looks
	defer cancel()
	_ = step.Pause(ctx, settle) // a service that is active may not answer
	if e.Unit == "" {
		<-ctx.Done()
		return
	}
	initsystem.AwaitStart(ctx, units, e.Unit)
}

// follow closes its event stream as soon as systemd stops the engine: dockerd
// waits up to five seconds for a client of its events.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/command/daemon.go#L240
func (e WatchedEngine) follow(ctx context.Context, units initsystem.Units, in *Inbox) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if e.Unit != "" {
		go func() {
			initsystem.AwaitStop(ctx, units, e.Unit, e.Socket)
			leave()
		}()
	}
	_ = e.Follow(ctx, func() { in.Up(e.Event, true) }, func() { in.Put(e.Event) })
}

func (e WatchedEngine) mayConnect(ctx context.Context, units initsystem.Units) bool {
	if e.Unit == "" {
		return true
	}
	active, err := units.Active(ctx, e.Unit)
	return err == nil && active
}

// WatchFiles puts changes in the directories into the inbox, until ctx ends. A
// directory that is missing is watched once it exists again.
func WatchFiles(ctx context.Context, in *Inbox, dirs ...string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	missing := map[string]bool{}
	for ctx.Err() == nil {
		var again <-chan time.Time
		for _, dir := range dirs {
			was := missing[dir]
			missing[dir] = watcher.Add(dir) != nil
			if missing[dir] {
				again = time.After(tickEvery) //nolint:forbidigo // the wait ends with ctx and with a change, too
			} else if was {
				in.Put(Files)
			}
		}
		select {
		case <-ctx.Done():
		case err := <-watcher.Errors:
			return err
		case <-watcher.Events:
			in.Put(Files)
		case <-again:
		}
	}
	return nil
}
