package initsystem

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/dbus"
	bus "github.com/godbus/dbus/v5"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
)

// AwaitStart returns when a daemon has started; without systemd, when ctx ends.
func AwaitStart(ctx context.Context, units Units, unit string) {
	starts := func(state any) bool { return state == "active" }
	if units.Init() == "systemd" && awaitState(ctx, service(unit), starts) == nil {
		return
	}
	<-ctx.Done()
}

// AwaitStop returns when a daemon begins to stop; without systemd, when its socket is
// removed. If neither can be observed, it returns when ctx ends.
func AwaitStop(ctx context.Context, units Units, unit, socket string) {
	stops := func(state any) bool { return state != "active" && state != "reloading" }
	if units.Init() == "systemd" && awaitState(ctx, service(unit), stops) == nil || awaitRemoval(ctx, socket) == nil {
		return
	}
	<-ctx.Done()
}

// awaitState returns when fits accepts the ActiveState of a unit.
func awaitState(ctx context.Context, unit string, fits func(state any) bool) error {
	conn, err := bus.ConnectSystemBus(bus.WithContext(ctx))
	if err != nil {
		return err
	}
	defer conn.Close()
	const systemd, properties = "org.freedesktop.systemd1", "org.freedesktop.DBus.Properties"
	path := bus.ObjectPath("/org/freedesktop/systemd1/unit/" + dbus.PathBusEscape(unit))
	if err := conn.AddMatchSignalContext(ctx, bus.WithMatchObjectPath(path),
		bus.WithMatchInterface(properties)); err != nil {
		return err
	}
	changed := make(chan *bus.Signal, 16)
	conn.Signal(changed)
	if err := conn.Object(systemd, "/org/freedesktop/systemd1").CallWithContext(ctx, systemd+".Manager.Subscribe",
		0).Err; err != nil {
		return err
	}
	for {
		state, err := conn.Object(systemd, path).GetProperty(systemd + ".Unit.ActiveState")
		if err != nil || fits(state.Value()) {
			return err
		}
		if _, open := <-changed; !open {
			return bus.ErrClosed
		}
	}
}

// awaitRemoval returns when a file is removed or replaced.
func awaitRemoval(ctx context.Context, path string) error {
	before, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return filesystem.Await(ctx, filepath.Dir(path), func() (bool, error) {
		now, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) {
			return true, nil
		}
		return err == nil && !os.SameFile(before, now), err
	})
}
