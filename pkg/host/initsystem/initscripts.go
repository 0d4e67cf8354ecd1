package initsystem

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

func run(ctx context.Context, args ...string) error {
	_, err := host.Run(ctx, args...)
	return err
}

// openrc manages the services of OpenRC, as on Alpine and Gentoo.
type openrc struct{}

func (openrc) Init() string { return "openrc" }

func (openrc) Start(ctx context.Context, unit string) error {
	return run(ctx, "rc-service", unit, "start")
}

func (openrc) Stop(ctx context.Context, unit string) error {
	return run(ctx, "rc-service", unit, "stop")
}

// Restart stops and starts the service. It does not call the script's own
// restart, because Debian's script for Docker fails at that if Docker does
// not run.
func (o openrc) Restart(ctx context.Context, unit string) error {
	if err := o.Stop(ctx, unit); err != nil {
		return err
	}
	return o.Start(ctx, unit)
}

func (openrc) Enable(ctx context.Context, unit string) error {
	return run(ctx, "rc-update", "add", unit, "default")
}

func (openrc) Disable(ctx context.Context, unit string) error {
	return run(ctx, "rc-update", "del", unit, "default")
}

func (openrc) Reload(context.Context) error { return nil }

func (openrc) Active(ctx context.Context, unit string) (bool, error) {
	return run(ctx, "rc-service", unit, "status") == nil, ctx.Err()
}

// sysv manages the scripts in /etc/init.d, as on Debian without systemd.
type sysv struct{}

func (sysv) Init() string { return "sysv" }

func (sysv) Start(ctx context.Context, unit string) error {
	return run(ctx, "service", unit, "start")
}

func (sysv) Stop(ctx context.Context, unit string) error {
	return run(ctx, "service", unit, "stop")
}

// Restart stops and starts the service, see openrc.Restart.
func (s sysv) Restart(ctx context.Context, unit string) error {
	active, err := s.Active(ctx, unit)
	if err != nil {
		return err
	}
	if active {
		if err := s.Stop(ctx, unit); err != nil {
			return err
		}
	}
	return s.Start(ctx, unit)
}

func (sysv) Enable(ctx context.Context, unit string) error {
	return run(ctx, "update-rc.d", unit, "defaults")
}

func (sysv) Disable(ctx context.Context, unit string) error {
	return run(ctx, "update-rc.d", unit, "remove")
}

// Reload renumbers the links in /etc/rc?.d, whose numbers are the start
// order. Without it, the other services would keep the numbers that they got
// because of a service that was removed. update-rc.d renumbers all links
// whatever service it is called for.
func (sysv) Reload(ctx context.Context) error {
	if !(host.Files{}).ExistsMatch("/etc/rc2.d/S??docker") {
		return nil
	}
	return run(ctx, "update-rc.d", "docker", "defaults")
}

func (sysv) Active(ctx context.Context, unit string) (bool, error) {
	return run(ctx, "service", unit, "status") == nil, ctx.Err()
}
