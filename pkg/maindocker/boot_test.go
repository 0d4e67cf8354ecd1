package maindocker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// bootLinks are the units of a host whose link of the boot unit is at link. Disable fails
// once, as if it was killed.
type bootLinks struct {
	initOnly
	files  host.Files
	link   string
	killed *bool
}

func (b bootLinks) Disable(context.Context, string) error {
	if !*b.killed {
		*b.killed = true
		return errors.New("killed")
	}
	return b.files.Remove(b.link)
}

func (bootLinks) Stop(context.Context, string) error { return nil }
func (bootLinks) Reload(context.Context) error       { return nil }

// TestAKilledRemovalOfTheBootUnit: the next Undo still removes the link.
func TestAKilledRemovalOfTheBootUnit(t *testing.T) {
	for init, link := range map[string]string{
		"systemd": "/etc/systemd/system/docker.service.wants/kube-bootstrap-network.service",
		"sysv":    "/etc/rc2.d/S01kube-bootstrap-network",
		"openrc":  "/etc/runlevels/default/kube-bootstrap-network",
	} {
		files := host.Files{Root: t.TempDir()}
		units := bootLinks{initOnly{name: init}, files, link, new(bool)}
		undo := BootUnit(files, units, "/bin/kube-bootstrap", time.Minute).Undo
		unit := bootFile(units, "/bin/kube-bootstrap", time.Minute)
		must.NoError(t, files.Put([]host.File{unit}))
		must.NoError(t, files.Symlink(link, unit.Path))
		if undo(t.Context()) == nil {
			t.Errorf("%s: no error of a killed Disable", init)
		}
		for range 2 {
			must.NoError(t, undo(t.Context()))
		}
		if files.Exists(unit.Path) || files.Exists(link) {
			t.Errorf("%s: the unit is left: %t, its link: %t", init, files.Exists(unit.Path), files.Exists(link))
		}
	}
}
