package maindocker

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

const (
	bootUnit = "kube-bootstrap-network"
	// bootSlack is the time that Boot may take in addition to its wait for the
	// lease.
	bootSlack = time.Minute
)

// BootUnitID identifies BootUnit.
const BootUnitID step.ID = "boot-unit"

// BootUnit runs `binary boot` each time before Docker starts, and after the
// firewall is reloaded. It waits for the lease no longer than limit, or longer on a busy host. Docker
// also starts if the unit fails, because Docker only wants it and does not
// require it.
func BootUnit(files host.Files, units initsystem.Units, binary string, limit time.Duration) step.Step {
	unit := bootFile(units, binary, limit)
	return step.Step{
		ID: BootUnitID, Name: "bring the network back at boot",
		Check: func(context.Context) (step.Diff, error) {
			diff, err := files.Missing([]host.File{unit})
			if err == nil && len(diff) == 0 && !initsystem.Enabled(files, units, bootUnit, "docker.service") {
				diff = append(diff, "enable "+bootUnit)
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			if err := files.Put([]host.File{unit}); err != nil {
				return err
			}
			return errors.Join(units.Enable(ctx, bootUnit), units.Reload(ctx))
		},
		Undo: func(ctx context.Context) error { return removeBootUnit(ctx, files, units, unit.Path) },
	}
}

func removeBootUnit(ctx context.Context, files host.Files, units initsystem.Units, path string) error {
	if !files.Exists(path) {
		return files.Remove(path) // what an interrupted write has left
	}
	// The file is removed last: a next Undo does nothing without it.
	if err := units.Disable(ctx, bootUnit); err != nil {
		return err
	}
	if units.Init() != "systemd" {
		return files.Remove(path)
	}
	// systemd still has the unit until the last Undo of the plan makes it read all units.
	// Until then, a start of Docker skips the unit, because its file is missing.
	if err := units.Stop(ctx, bootUnit); err != nil {
		return err
	}
	return files.Remove(path)
}

//go:embed kube-bootstrap-network.*
var unitFiles embed.FS

func bootFile(units initsystem.Units, binary string, limit time.Duration) host.File {
	values := map[string]any{
		"Binary": binary, "Seconds": int((step.Longest(limit) + bootSlack).Seconds()),
		"Path": initsystem.UnitPath(units, bootUnit),
	}
	return initsystem.ServiceFile(units, bootUnit, unitFiles, values)
}

// Boot waits for the lease, and makes daemon.json, docker0 and the firewall
// match it. Docker waits for the end of Boot, so Boot never stops or starts
// Docker. On a reload of the firewall it does not change the settings of the
// running Docker. It does nothing while Move is being undone, because
// turndown starts Docker too.
func (o Overlay) Boot(ctx context.Context) error {
	files := o.Docker.Files
	if moved, err := moved(files); err != nil || !moved || readPending(files).Back {
		return err
	}
	var lease subnet.Lease
	if err := step.Until(ctx, func(context.Context) (err error) {
		lease, err = o.Lease()
		return err
	}, nil); err != nil {
		return fmt.Errorf("wait for this host's subnet: %w", err)
	}
	data, _, err := goalFor(ctx, files, lease)
	if err != nil {
		return err
	}
	// A request to Docker's socket would block: systemd accepts it and starts
	// Docker, which waits for Boot.
	running, err := o.Docker.Units.Active(ctx, "docker")
	if err != nil {
		return err
	}
	if !running {
		if err := bootSettings(ctx, files, data); err != nil {
			return err
		}
		if err := setLink(lease); err != nil {
			return err
		}
	}
	now, err := readSettings(files)
	if err != nil {
		return err
	}
	return errors.Join(firewallFor(o.Link, lease, o.Hosts, now).apply(ctx), keepPolicy(files))
}

// bootSettings writes daemon.json, unless Docker would not start with it.
func bootSettings(ctx context.Context, files host.Files, data []byte) error {
	if data == nil {
		return nil
	}
	if err := validate(ctx, data); err != nil {
		return err
	}
	if _, err := recoverOriginal(files); err != nil {
		return err
	}
	return writeSettings(files, data)
}
