package host

import (
	"context"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// HasBridgeNetfilter reports whether bridged packets pass the firewall: the
// kernel module br_netfilter is there.
func HasBridgeNetfilter() bool {
	_, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables")
	return err == nil
}

// LoadModule loads a kernel module, with what it depends on.
func LoadModule(ctx context.Context, name string) error {
	_, err := Run(ctx, "modprobe", name)
	return err
}

// StartedAt returns when a container was started last; ok is false unless it
// runs. An engine that does not answer runs none.
func (d *Docker) StartedAt(ctx context.Context, name string) (at time.Time, ok bool, err error) {
	now, err := d.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) || err != nil && client.IsErrConnectionFailed(err) {
		return at, false, nil
	}
	if err != nil || now.Container.State == nil || !now.Container.State.Running {
		return at, false, err
	}
	at, err = time.Parse(time.RFC3339Nano, now.Container.State.StartedAt)
	return at, err == nil, err
}
