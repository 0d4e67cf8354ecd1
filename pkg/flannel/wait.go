package flannel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

// errLost states that the file of flanneld is lost. flanneld writes it only when it starts.
var errLost = errors.New("flanneld has written its subnet, and the file is lost")

// runAndWait restarts flanneld if its file is lost meanwhile. The watch must not see this end
// of flanneld, so it ends before.
func (d Flanneld) runAndWait(ctx context.Context) error {
	err := d.runOnce(ctx)
	if errors.Is(err, errLost) {
		err = d.runOnce(ctx)
	}
	return err
}

// runOnce watches the directory before it starts flanneld, so that it misses no
// write. The slow tick covers a container that was started in between. A quick tick
// replaces the watch if the host has no inotify instance left.
func (d Flanneld) runOnce(ctx context.Context) error {
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

// run starts flanneld. It replaces a flanneld whose file is lost, but not a flanneld
// that is slow or cannot reach etcd.
func (d Flanneld) run(ctx context.Context) error {
	// If this fails, flanneld creates the link, and Overlay corrects it.
	if err := EnsureVTEP(d.Backend, d.PublicIP); err != nil {
		step.Report(ctx, err.Error(), 0, 0)
	}
	if err := d.claimed(ctx); err != nil {
		return err
	}
	switch err := d.lost(ctx); {
	case errors.Is(err, errLost):
		if err := d.service().Remove(ctx); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return d.service().Run(ctx)
}

// lost returns errLost if flanneld runs, has tried to write its file, and there is no valid
// file. flanneld 0.28.10 logs the attempt after it, and does not repeat a failed one.
// https://github.com/flannel-io/flannel/blob/v0.28.10/main.go#L477-L485
func (d Flanneld) lost(ctx context.Context) error {
	_, running, err := d.service().StartedAt(ctx)
	if err != nil || !running {
		return err
	}
	log, err := d.service().Log(ctx)
	if err != nil || !strings.Contains(log, "Wrote subnet file") &&
		!strings.Contains(log, "Failed to write subnet file") {
		return err
	}
	_, err = d.lease(ctx)
	if err != nil && !step.IsUnanswered(err) {
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// claimed calls claim. If this host has a lease file, it ignores that etcd
// does not answer, because flanneld requests the subnet in that file.
// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/subnet/etcd/local_manager.go#L181-L191
func (d Flanneld) claimed(ctx context.Context) error {
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

func (d Flanneld) wait(ctx context.Context, events <-chan fsnotify.Event, every time.Duration) error {
	limited, cancel := step.Limited(ctx)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		_, err := d.lease(limited)
		if err == nil {
			return nil
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("no subnet within %s: %w; the end of flanneld's log:\n%s", step.Span(limited), err,
				d.service().Tail(ctx, 15))
		case <-events:
		case <-tick.C:
			if err := d.lost(limited); errors.Is(err, errLost) {
				return err
			}
		}
	}
}

// lease returns the lease that the current flanneld has written. An older
// file is from the last run and only tells flanneld which subnet to request.
func (d Flanneld) lease(ctx context.Context) (subnet.Lease, error) {
	started, running, err := d.service().StartedAt(ctx)
	if err != nil {
		return subnet.Lease{}, err
	}
	if !running {
		return subnet.Lease{}, fmt.Errorf("flanneld does not run")
	}
	info, err := os.Stat(d.Files.Path(d.leasePath()))
	if err != nil {
		return subnet.Lease{}, err
	}
	if info.ModTime().Before(started.Add(-clockGrain)) {
		return subnet.Lease{}, fmt.Errorf("%s is stale: it was written before flanneld started", d.leasePath())
	}
	return d.readLease()
}

const clockGrain = 20 * time.Millisecond // the maximum lag of file times behind the clock

func (d Flanneld) readLease() (subnet.Lease, error) {
	lease, err := subnet.Read(d.Files, d.SubnetDir)
	if err == nil && d.Network.IsValid() && lease.Network != d.Network {
		err = fmt.Errorf("%s is a lease of %s, not of %s", d.leasePath(), lease.Network, d.Network)
	}
	return lease, err
}
