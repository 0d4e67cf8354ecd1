package flannel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// runAndWait watches the directory from before flanneld starts, so that no
// write is missed. The slow tick only catches a container that came up
// between the two. A host has few inotify instances, and all may be taken:
// then the tick is quick and does the whole work.
func (d Daemon) runAndWait(ctx context.Context) error {
	tick := time.Second
	events, stop, err := watch(d.Files.Path(d.SubnetDir))
	if err != nil {
		events, stop, tick = nil, func() {}, time.Second/10
	}
	defer stop()
	if err := d.run(ctx); err != nil {
		return err
	}
	step.Report(ctx, "waiting for this host's subnet in "+d.leasePath(), 0, 0)
	return step.Watching(ctx, d.service().Watch, func(ctx context.Context) error { return d.wait(ctx, events, tick) })
}

func watch(dir string) (events <-chan fsnotify.Event, stop func(), err error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, err
	}
	if err := watcher.Add(dir); err != nil {
		watcher.Close()
		return nil, nil, err
	}
	return watcher.Events, func() { watcher.Close() }, nil
}

// run restarts a flanneld that has had its time and still has no lease of its
// own: it writes the file only when it starts, so one that was damaged or
// removed since stays so. One that cannot reach etcd loses nothing by it.
func (d Daemon) run(ctx context.Context) error {
	// Without the link flanneld makes one, and the overlay's step repairs it.
	if err := d.MakeLink(); err != nil {
		step.Report(ctx, err.Error(), 0, 0)
	}
	started, running, err := d.service().StartedAt(ctx)
	if err != nil {
		return err
	}
	if err := d.claimed(ctx); err != nil {
		return err
	}
	if _, err := d.lease(ctx); running && err != nil && time.Since(started).Abs() > step.CheckLimit(ctx) {
		if err := d.service().Remove(ctx); err != nil {
			return err
		}
	}
	return d.service().Run(ctx)
}

// claimed is claim, which a host that knows its subnet does without: flanneld
// asks for that one while etcd does not answer.
func (d Daemon) claimed(ctx context.Context) error {
	_, unknown := d.readLease()
	return step.Until(ctx, func(ctx context.Context) error {
		err := d.claim(ctx)
		switch {
		case len(step.Problems(err)) > 0:
			return step.Final(err)
		case err != nil && unknown == nil:
			step.Report(ctx, err.Error(), 0, 0)
			return nil
		}
		return err
	}, nil)
}

func (d Daemon) wait(ctx context.Context, events <-chan fsnotify.Event, every time.Duration) error {
	limited, cancel := step.Limited(ctx)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	again := time.After(step.CheckLimit(ctx))
	for {
		_, err := d.lease(limited)
		if err == nil {
			return nil
		}
		select {
		case <-again: // the file was lost after flanneld had written it
			if err := errors.Join(d.service().Remove(limited), d.service().Run(limited)); err != nil {
				return err
			}
		default:
		}
		select {
		case <-limited.Done():
			return d.gaveUp(ctx, err)
		case <-events:
		case <-tick.C:
		}
	}
}

func (d Daemon) gaveUp(ctx context.Context, last error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("no subnet within %s: %w; flanneld said last:\n%s", step.Limit(ctx), last, d.service().Tail(ctx, 15))
}

// lease is the one that the flanneld that runs now has written: a file that is
// older is the last run's, and only tells flanneld which subnet to ask for.
func (d Daemon) lease(ctx context.Context) (Lease, error) {
	started, running, err := d.service().StartedAt(ctx)
	if err != nil {
		return Lease{}, err
	}
	if !running {
		return Lease{}, fmt.Errorf("flanneld does not run")
	}
	info, err := os.Stat(d.Files.Path(d.leasePath()))
	if err != nil {
		return Lease{}, err
	}
	if info.ModTime().Before(started.Add(-clockGrain)) {
		return Lease{}, fmt.Errorf("%s is from before flanneld's start", d.leasePath())
	}
	return d.readLease()
}

// clockGrain is how far the kernel's file times lag behind its clock.
const clockGrain = 20 * time.Millisecond

func (d Daemon) readLease() (Lease, error) {
	lease, err := ReadLease(d.Files, d.SubnetDir)
	if err == nil && d.Network.IsValid() && lease.Network != d.Network {
		err = fmt.Errorf("%s is a lease of %s, not of %s", d.leasePath(), lease.Network, d.Network)
	}
	return lease, err
}
