package initsystem

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// EndSlice kills all processes in a systemd slice such as "kubepods", stops the
// slice and its child slices, and waits until systemd has unloaded them. This
// also removes their files in /run/systemd/transient and their cgroups. It does
// nothing on a host without systemd.
func EndSlice(ctx context.Context, name string) error {
	if Open().Init() != "systemd" {
		return nil
	}
	// Without this, systemd would send SIGTERM first and wait for the processes.
	if err := process.EndCgroup(ctx, name+".slice"); err != nil {
		return err
	}
	return step.Until(ctx, func(ctx context.Context) error {
		return systemd{}.with(ctx, func(c *dbus.Conn) error { return stopUnits(ctx, c, name+".slice", name+"-*.slice") })
	}, nil)
}

// stopUnits stops the units that match the patterns, and returns an error while
// any are left.
func stopUnits(ctx context.Context, c *dbus.Conn, patterns ...string) error {
	units, err := c.ListUnitsByPatternsContext(ctx, nil, patterns)
	if err != nil || len(units) == 0 {
		return err
	}
	var names []string
	var errs []error
	for _, u := range units {
		names = append(names, u.Name)
		_, err := c.StopUnitContext(ctx, u.Name, "replace", nil)
		errs = append(errs, err)
		// systemd keeps a failed unit loaded until it is reset. The call fails if
		// systemd has unloaded the unit meanwhile.
		_ = c.ResetFailedUnitContext(ctx, u.Name)
	}
	return errors.Join(append(errs, fmt.Errorf("systemd still has %s", strings.Join(names, ", ")))...)
}
