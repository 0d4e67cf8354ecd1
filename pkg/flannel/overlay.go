package flannel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ownPatience is the time for flanneld to react to a change before it is
// restarted.
const ownPatience = 1500 * time.Millisecond

// Overlay is the step that makes this host's overlay link, routes and
// neighbours match the leases in etcd. flanneld sets them when it starts and
// when a lease changes, but does not notice when they are removed.
func (d Daemon) Overlay() step.Step {
	return step.Step{
		Name: "route to the subnets of the other hosts",
		Check: func(ctx context.Context) (diff step.Diff, err error) {
			err = d.looking(ctx, func(_ *clientv3.Client, v view) error {
				diff, err = v.diff()
				return err
			})
			if errors.Is(err, fs.ErrNotExist) {
				return step.Diff{"route to the subnets of the other hosts, after flanneld has started"}, nil
			}
			return diff, err
		},
		Apply: d.repairOverlay,
	}
}

// looking calls do with an etcd client and the current view.
func (d Daemon) looking(ctx context.Context, do func(*clientv3.Client, view) error) error {
	client, err := d.Etcd.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	v, err := d.view(ctx, client)
	if err != nil {
		return err
	}
	return do(client, v)
}

func (d Daemon) repairOverlay(ctx context.Context) error {
	limited, cancel := step.Limited(ctx)
	defer cancel()
	return d.looking(limited, func(client *clientv3.Client, v view) error {
		if err := d.vtep().keepMAC(); err != nil {
			return err
		}
		agrees := func(ctx context.Context) error { return d.agrees(ctx, client) }
		if step.Until(step.WithLimit(ctx, ownPatience), agrees, nil) == nil {
			return nil
		}
		if err := v.removeStale(); err != nil || agrees(ctx) == nil {
			return err
		}
		step.Report(ctx, "restarting flanneld", 0, 0)
		if err := d.service().Restart(ctx); err != nil {
			return err
		}
		return step.Until(ctx, agrees, func() string { return d.service().Tail(ctx, 15) })
	})
}

func (d Daemon) agrees(ctx context.Context, client *clientv3.Client) error {
	v, err := d.view(ctx, client)
	if err != nil {
		return err
	}
	diff, err := v.diff()
	if err == nil && len(diff) > 0 {
		err = fmt.Errorf("the overlay still differs: %s", diff)
	}
	return err
}

// view reads this host's lease and the leases of all hosts.
func (d Daemon) view(ctx context.Context, client *clientv3.Client) (view, error) {
	own, err := d.lease(ctx)
	if err != nil {
		return view{}, step.NoAnswer(err)
	}
	all, err := leases(ctx, client)
	return view{backend: d.Backend, publicIP: d.PublicIP, own: own, leases: all}, err
}
