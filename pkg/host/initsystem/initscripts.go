package initsystem

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// scripts manages services with the programs of an init system.
type scripts string

const (
	openrc scripts = "openrc" // as on Alpine and Gentoo
	sysv   scripts = "sysv"   // /etc/init.d, as on Debian without systemd
)

// run runs a program of the init system in a process group of its own, because a signal of the
// terminal must not stop it half way.
func run(ctx context.Context, args ...string) error {
	_, err := host.Command{Args: args, Group: true}.Run(ctx)
	return err
}

func (s scripts) control(ctx context.Context, unit, verb string) error {
	program := map[scripts]string{openrc: "rc-service", sysv: "service"}[s]
	return run(ctx, program, unit, verb)
}

func (s scripts) Init() string { return string(s) }

// Known returns true, as each start reads the script.
func (scripts) Known(context.Context, string) (bool, error) { return true, nil }

func (s scripts) Start(ctx context.Context, unit string) error { return s.control(ctx, unit, "start") }

func (s scripts) StartNew(ctx context.Context, unit string) error { return s.Start(ctx, unit) }

func (s scripts) Stop(ctx context.Context, unit string) error { return s.control(ctx, unit, "stop") }

// Restart does not call the script's own restart: Debian's script for Docker, up to 28.5, fails
// at that if Docker does not run. Upstream's does not since 23.0.
// https://github.com/moby/moby/commit/8ad8c6d88777ba6d4e8563c1a93c72f2e61e20f6
func (s scripts) Restart(ctx context.Context, unit string) error {
	active, err := s.Active(ctx, unit)
	if err != nil {
		return err
	}
	if active || s == openrc { // which has to stop a crashed service as well
		if err := s.Stop(ctx, unit); err != nil {
			return err
		}
	}
	return s.Start(ctx, unit)
}

func (s scripts) Enable(ctx context.Context, unit string) error {
	return s.update(ctx, unit, "add", "defaults")
}

// Disable does nothing for a service that does not start at boot, because rc-update would fail.
func (s scripts) Disable(ctx context.Context, unit string) error {
	if s == openrc && !Enabled(host.Files{}, s, unit, "") {
		return nil
	}
	return s.update(ctx, unit, "del", "remove")
}

// update changes the links that start a service at boot.
func (s scripts) update(ctx context.Context, unit, openrcVerb, sysvVerb string) error {
	if s == openrc {
		return run(ctx, "rc-update", openrcVerb, unit, "default")
	}
	return run(ctx, "update-rc.d", unit, sysvVerb)
}

// Reload renumbers the links in /etc/rc?.d, whose numbers are the start order and may
// come from a service that was removed. update-rc.d does this for any service.
func (s scripts) Reload(ctx context.Context) error {
	if s == openrc || !(host.Files{}).ExistsMatch("/etc/rc2.d/S??docker") {
		return nil
	}
	return run(ctx, "update-rc.d", "docker", "defaults")
}

func (s scripts) Active(ctx context.Context, unit string) (bool, error) {
	return s.control(ctx, unit, "status") == nil, ctx.Err()
}
