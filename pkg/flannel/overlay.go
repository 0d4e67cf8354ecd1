package flannel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// ownLimit is the time for flanneld to make progress before it is
	// restarted. leasePatience is added for each lease: flanneld 0.28.10 reads the
	// time to live of each with its own request before it adds the first route.
	// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/subnet/etcd/registry.go#L184-L185
	ownLimit      = 1500 * time.Millisecond
	leaseLimit    = 10 * time.Millisecond
	progressPause = 25 * time.Millisecond
)

// Overlay is the step that makes this host's overlay link, routes and
// neighbours match the leases in etcd. flanneld sets them when it starts and
// when a lease changes, but does not notice when they are removed.
func (d Flanneld) Overlay() step.Step {
	return step.Step{
		ID: "overlay-routes", Name: "route to the subnets of the other hosts",
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
		Waits: true, // another host may lease a subnet at any time
	}
}

// looking calls do with an etcd client and the current view.
func (d Flanneld) looking(ctx context.Context, do func(*clientv3.Client, view) error) error {
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

func (d Flanneld) repairOverlay(ctx context.Context) error {
	return d.looking(ctx, func(client *clientv3.Client, v view) error {
		if err := EnsureVTEP(d.Backend, d.PublicIP); err != nil {
			return err
		}
		check := func(ctx context.Context) (step.Diff, error) { return d.differences(ctx, client) }
		limit := ownLimit + time.Duration(len(v.leases))*leaseLimit
		if stuck, err := persists(ctx, limit, check); err != nil || !stuck {
			return err
		}
		if err := v.removeStale(); err != nil {
			return err
		}
		if stuck, err := step.Persists(ctx, 0, check); err != nil || !stuck {
			return err
		}
		if err := d.restart(ctx); err != nil {
			return err
		}
		stuck, err := persists(ctx, step.Limit(ctx), check)
		if stuck {
			err = fmt.Errorf("no progress within %s", step.Limit(ctx))
		}
		return step.Explained(err, func() string { return d.service().Tail(ctx, 15) })
	})
}

// restart corrects the overlay link and restarts flanneld, which then uses this link. flanneld
// 0.28.10 makes a deleted link again, but with a random MAC address, below the first address of
// the interface and without routes. It therefore must not run while its link is replaced.
func (d Flanneld) restart(ctx context.Context) error {
	step.Report(ctx, "restarting flanneld", 0, 0)
	return d.service().RestartAround(ctx, func() error { return EnsureVTEP(d.Backend, d.PublicIP) })
}

// persists is step.Persists, but a difference that becomes smaller does not persist: flanneld
// handles one lease after another, and starts again with the first when it is restarted.
func persists(ctx context.Context, limit time.Duration, check func(context.Context) (step.Diff, error)) (bool, error) {
	last := math.MaxInt // compared with the last look, because leases may be added meanwhile
	stuck := func(ctx context.Context) (step.Diff, error) {
		diff, err := check(ctx)
		if err != nil {
			return nil, err
		}
		before := last
		if last = len(diff); last < before {
			return nil, nil
		}
		return diff, nil
	}
	for {
		if is, err := step.Persists(ctx, limit, stuck); is || err != nil || last == 0 {
			return is, err
		}
		if err := step.Pause(ctx, progressPause); err != nil {
			return false, err
		}
	}
}

func (d Flanneld) differences(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
	v, err := d.view(ctx, client)
	if err != nil {
		return nil, err
	}
	return v.diff()
}

// view reads this host's lease and the leases of all hosts.
func (d Flanneld) view(ctx context.Context, client *clientv3.Client) (view, error) {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	own, err := d.lease(ctx)
	if err != nil {
		return view{}, step.NoAnswer(err)
	}
	all, err := leases(ctx, client)
	return view{backend: d.Backend, publicIP: d.PublicIP, own: own, leases: all}, err
}

// vtepVNI is flanneld's default VXLAN network identifier.
const vtepVNI = 1

// vtepMAC derives the MAC address of a host's VXLAN link from its public IP, so that
// other hosts reach this host after a reboot before they learn a new address from etcd.
// The first byte marks it as locally administered.
func vtepMAC(publicIP netip.Addr) string {
	if !publicIP.Is4() {
		return ""
	}
	ip := publicIP.As4()
	return fmt.Sprintf("0a:4b:%02x:%02x:%02x:%02x", ip[0], ip[1], ip[2], ip[3])
}

// EnsureVTEP creates the link of the backend vxlan, the end of this host's tunnels, or gives it
// its MAC address back. flanneld adopts this link and publishes its MAC address when it starts.
// It would replace a link that uses another address by one with a random MAC address (0.28.10),
// and it needs etcd. EnsureVTEP must therefore run before the balancer, which forwards the
// requests to etcd. It does nothing for other backends, or if publicIP is not an IPv4 address.
// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/backend/vxlan/device.go#L49-L113
func EnsureVTEP(backend string, publicIP netip.Addr) error {
	mac := vtepMAC(publicIP)
	if backend != "vxlan" || mac == "" {
		return nil
	}
	name := Link(backend)
	err := links.AddVxlan(links.Vxlan{Name: name, ID: vtepVNI, Local: publicIP, MAC: mac})
	if err != nil {
		return err
	}
	link, ok, err := links.Find(name)
	if err != nil || !ok || link.MAC == mac {
		return err
	}
	return links.SetMAC(name, mac)
}
