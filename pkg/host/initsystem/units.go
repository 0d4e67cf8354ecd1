// Package initsystem manages services with systemd, OpenRC or the scripts in /etc/init.d.
package initsystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"text/template"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Units manages the host's services. Names have no suffix: "docker" is
// docker.service, /etc/init.d/docker or rc-service docker.
type Units interface {
	// Init names the init system: "systemd", "openrc" or "sysv".
	Init() string
	// Known reports whether the init system has a version of a unit, also if its file is gone.
	Known(ctx context.Context, unit string) (bool, error)
	// Start starts a unit with its current file. StartNew does so for a unit that was not
	// known before its file was written.
	Start(ctx context.Context, unit string) error
	StartNew(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
	// Enable makes the unit start at boot, and Disable reverts that.
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	// Reload makes the init system read all changed unit files and links: after the link
	// of a unit that runs was changed, and once after units were removed.
	Reload(ctx context.Context) error
	Active(ctx context.Context, unit string) (bool, error)
}

// Open returns the Units of the host's init system.
func Open() Units {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		return systemd{}
	}
	if _, err := exec.LookPath("rc-service"); err == nil {
		return openrc
	}
	return sysv
}

type systemd struct{}

func (systemd) Init() string { return "systemd" }

// with connects for each call, because systemd closes connections when it re-executes itself.
func (systemd) with(ctx context.Context, do func(*dbus.Conn) error) error {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to systemd: %w", err)
	}
	defer conn.Close()
	return do(conn)
}

// job queues a job and waits for its result, which systemd sends as a signal.
func (s systemd) job(ctx context.Context, verb, unit string,
	queue func(c *dbus.Conn, ctx context.Context, unit, mode string, result chan<- string) (int, error),
) error {
	return s.with(ctx, func(conn *dbus.Conn) error {
		result := make(chan string, 1)
		if _, err := queue(conn, ctx, service(unit), "replace", result); err != nil {
			return fmt.Errorf("%s %s: %w", verb, unit, err)
		}
		select {
		case got := <-result:
			if got != "done" {
				return fmt.Errorf("%s %s: job %s; see `journalctl -u %s`", verb, unit, got, unit)
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// reset makes systemd forget a failure. The call fails for a unit that is not loaded.
func (s systemd) reset(ctx context.Context, unit string) error {
	return s.with(ctx, func(c *dbus.Conn) error {
		_ = c.ResetFailedUnitContext(ctx, service(unit))
		return nil
	})
}

func (s systemd) Known(ctx context.Context, unit string) (known bool, err error) {
	err = s.with(ctx, func(c *dbus.Conn) error {
		state, err := c.GetUnitPropertyContext(ctx, service(unit), "LoadState")
		known = err == nil && state.Value.Value() != "not-found"
		return err
	})
	return known, err
}

// Start makes systemd read its unit files again if it has read another version of any. To read
// them takes up to a quarter of a second, during which systemd starts and stops nothing.
func (s systemd) Start(ctx context.Context, unit string) error {
	err := s.with(ctx, func(c *dbus.Conn) error {
		changed, err := c.GetUnitPropertyContext(ctx, service(unit), "NeedDaemonReload")
		if err == nil && changed.Value.Value() == false {
			return nil
		}
		return c.ReloadContext(ctx)
	})
	if err != nil {
		return err
	}
	return s.StartNew(ctx, unit)
}

// StartNew relies on systemd to read the file of a new unit by itself, which old versions
// do not.
func (s systemd) StartNew(ctx context.Context, unit string) error {
	known, err := s.Known(ctx, unit)
	if err == nil && !known {
		err = s.Reload(ctx)
	}
	if err != nil {
		return err
	}
	return s.job(ctx, "start", unit, (*dbus.Conn).StartUnitContext)
}

// Stop also resets the unit: systemd lists a failed unit even without its file.
func (s systemd) Stop(ctx context.Context, unit string) error {
	if err := s.job(ctx, "stop", unit, (*dbus.Conn).StopUnitContext); err != nil {
		return err
	}
	return s.reset(ctx, unit)
}

// Restart first resets the unit: the start limit after crashes would refuse the restart.
func (s systemd) Restart(ctx context.Context, unit string) error {
	if err := s.reset(ctx, unit); err != nil {
		return err
	}
	return s.job(ctx, "restart", unit, (*dbus.Conn).RestartUnitContext)
}

func (s systemd) Enable(ctx context.Context, unit string) error {
	return s.with(ctx, func(c *dbus.Conn) error {
		_, _, err := c.EnableUnitFilesContext(ctx, []string{service(unit)}, false, true)
		return err
	})
}

func (s systemd) Disable(ctx context.Context, unit string) error {
	return s.with(ctx, func(c *dbus.Conn) error {
		_, err := c.DisableUnitFilesContext(ctx, []string{service(unit)}, false)
		return err
	})
}

func (s systemd) Reload(ctx context.Context) error {
	return s.with(ctx, func(c *dbus.Conn) error { return c.ReloadContext(ctx) })
}

func (s systemd) Active(ctx context.Context, unit string) (active bool, err error) {
	err = s.with(ctx, func(c *dbus.Conn) error {
		states, err := c.ListUnitsByNamesContext(ctx, []string{service(unit)})
		active = err == nil && len(states) == 1 && states[0].ActiveState == "active"
		return err
	})
	return active, err
}

// service adds the suffix .service, unless the name has a suffix.
func service(unit string) string {
	if strings.HasSuffix(unit, ".service") || strings.HasSuffix(unit, ".socket") {
		return unit
	}
	return unit + ".service"
}

// UnitPath returns the path of the unit file or the init script of a service.
func UnitPath(units Units, unit string) string {
	if units.Init() == "systemd" {
		return "/etc/systemd/system/" + service(unit)
	}
	return "/etc/init.d/" + unit
}

// ServiceFile returns the unit file or the init script of a service, from the template
// UNIT.service, UNIT.openrc or UNIT.sysv.
func ServiceFile(units Units, unit string, templates fs.FS, values map[string]any) host.File {
	kind, mode := units.Init(), os.FileMode(0o755)
	if kind == "systemd" {
		kind, mode = "service", 0o644
	}
	name := unit + "." + kind
	var text bytes.Buffer
	t := template.New(name).Funcs(template.FuncMap{"join": strings.Join}).Option("missingkey=error")
	t = template.Must(t.ParseFS(templates, name))
	if err := t.Execute(&text, values); err != nil {
		panic(err) // impossible: the templates and the names of their values are constant
	}
	return host.File{Path: UnitPath(units, unit), Data: text.Bytes(), Mode: mode}
}

// Enabled reports whether the link exists that Enable creates. systemd has it in the
// .wants directory of wantedBy, such as "multi-user.target".
func Enabled(files host.Files, units Units, unit, wantedBy string) bool {
	switch units.Init() {
	case "systemd":
		return files.Exists("/etc/systemd/system/" + wantedBy + ".wants/" + service(unit))
	case "openrc":
		return files.Exists("/etc/runlevels/default/" + unit)
	}
	return files.ExistsMatch("/etc/rc2.d/S??" + unit)
}

// EndSlice kills all processes in a systemd slice such as "kubepods", stops it and its
// child slices, and waits until systemd has unloaded them and has removed their files
// and cgroups. It does nothing on a host without systemd.
func EndSlice(ctx context.Context, name string) error {
	if Open().Init() != "systemd" {
		return nil
	}
	// Without this, systemd would send SIGTERM first and wait for the processes.
	if err := process.EndCgroup(ctx, name+".slice"); err != nil {
		return err
	}
	return step.Until(ctx, func(ctx context.Context) error {
		return systemd{}.with(ctx,
			func(c *dbus.Conn) error { return stopUnits(ctx, c, name+".slice", name+"-*.slice") })
	}, nil)
}

// stopUnits stops the units that match, and returns an error while any are left.
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
