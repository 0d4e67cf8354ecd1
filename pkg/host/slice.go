package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// EndSlice kills all that runs in a slice of systemd, "kubepods", stops the
// slice and the slices in it, and waits until systemd has forgotten them. With
// them go their files in /run/systemd/transient and their control groups. It
// does nothing on a host of another init system.
func EndSlice(ctx context.Context, name string) error {
	if OpenUnits().Init() != "systemd" {
		return nil
	}
	// systemd itself would ask the processes to end, and wait for them.
	if err := EndCgroup(ctx, name+".slice"); err != nil {
		return err
	}
	return step.Until(ctx, func(ctx context.Context) error {
		return systemd{}.with(ctx, func(c *dbus.Conn) error { return stopUnits(ctx, c, name+".slice", name+"-*.slice") })
	}, nil)
}

// stopUnits stops the units that match, and fails as long as there are any.
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
		// systemd keeps a unit that has failed. It refuses for one that it has
		// forgotten meanwhile.
		_ = c.ResetFailedUnitContext(ctx, u.Name)
	}
	return errors.Join(append(errs, fmt.Errorf("systemd still has %s", strings.Join(names, ", ")))...)
}
