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

// runAndWait watches the directory before it starts flanneld, so that it misses no
// write. The slow tick covers a container that was started in between. A quick tick
// replaces the watch if the host has no inotify instance left.
func (d Daemon) runAndWait(ctx context.Context) error {
	var events <-chan fsnotify.Event
	tick := time.Second / 10
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer watcher.Close()
		if watcher.Add(d.Files.Path(d.SubnetDir)) == nil {
			events, tick = watcher.Events, time.Second
		}
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	step.Report(ctx, "waiting for this host's subnet in "+d.leasePath(), 0, 0)
	return step.Watching(ctx, d.service().Watch, func(ctx context.Context) error { return d.wait(ctx, events, tick) })
}

// run restarts a flanneld that has run for CheckLimit without a valid lease, because
// it writes the file only when it starts. A flanneld that cannot reach etcd loses nothing.
func (d Daemon) run(ctx context.Context) error {
	// If this fails, flanneld creates the link, and Overlay corrects it.
	if err := CreateVTEP(d.Backend, d.PublicIP); err != nil {
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

// claimed calls claim. If this host has a lease file, it ignores that etcd
// does not answer, because flanneld requests the subnet in that file.
func (d Daemon) claimed(ctx context.Context) error {
	_, unknown := d.readLease()
	return step.Until(ctx, func(ctx context.Context) error {
		err := claim(ctx, d.Etcd, d.Host, d.PublicIP)
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
		case <-again: // the file was removed after flanneld had written it
			if err := errors.Join(d.service().Remove(limited), d.service().Run(limited)); err != nil {
				return err
			}
		default:
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("no subnet within %s: %w; the end of flanneld's log:\n%s", step.Limit(ctx), err, d.service().Tail(ctx, 15))
		case <-events:
		case <-tick.C:
		}
	}
}

// lease returns the lease that the current flanneld has written. An older
// file is from the last run and only tells flanneld which subnet to request.
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
		return Lease{}, fmt.Errorf("%s is stale: it was written before flanneld started", d.leasePath())
	}
	return d.readLease()
}

const clockGrain = 20 * time.Millisecond // the maximum lag of file times behind the clock

func (d Daemon) readLease() (Lease, error) {
	lease, err := ReadLease(d.Files, d.SubnetDir)
	if err == nil && d.Network.IsValid() && lease.Network != d.Network {
		err = fmt.Errorf("%s is a lease of %s, not of %s", d.leasePath(), lease.Network, d.Network)
	}
	return lease, err
}
