package agent

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// startPause is the pause between two looks whether an engine has started.
const startPause = 2 * time.Second

var changes = map[host.Change]Event{
	host.LinkChanged: Link, host.RouteChanged: Route, host.ForwardingChanged: Forwarding, host.RulesRemoved: Firewall,
}

// WatchKernel puts what the kernel reports by netlink into the inbox.
func WatchKernel(ctx context.Context, in *Inbox, failed func(error)) {
	put := func(c host.Change) { in.Put(changes[c]) }
	go Forever(ctx, func(ctx context.Context) error { return host.WatchFirewall(ctx, put) }, failed)
	Forever(ctx, func(ctx context.Context) error { return host.WatchNetwork(ctx, put) }, failed)
}

// Engine is a Docker engine of this host.
type Engine struct {
	Event Event // MainDocker or BootstrapDocker
	Unit  string
	Open  func() (*docker.Engine, error)
}

// Watch puts the events of the engine into the inbox. It connects only while
// the engine's service runs: a connection to the socket of a stopped Docker may
// start it.
func (e Engine) Watch(ctx context.Context, units host.Units, in *Inbox) {
	for ctx.Err() == nil {
		if active, err := units.Active(ctx, e.Unit); err == nil && active {
			_ = e.follow(ctx, in)
			in.Up(e.Event, false)
		}
		sleep(ctx, startPause, nil)
	}
}

func (e Engine) follow(ctx context.Context, in *Inbox) error {
	engine, err := e.Open()
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := engine.Answers(ctx); err != nil {
		return err
	}
	in.Up(e.Event, true)
	return engine.Follow(ctx, func() { in.Put(e.Event) })
}

// WatchFiles puts changes in the directories into the inbox, except for
// directories that do not exist.
func WatchFiles(ctx context.Context, in *Inbox, dirs ...string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	for _, dir := range dirs {
		_ = watcher.Add(dir)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watcher.Errors:
			return err
		case <-watcher.Events:
			in.Put(Files)
		}
	}
}
