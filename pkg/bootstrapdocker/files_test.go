package bootstrapdocker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// initOnly is a host of that init system on which nothing runs.
type initOnly string

func (i initOnly) Init() string                               { return string(i) }
func (initOnly) Known(context.Context, string) (bool, error)  { return false, nil }
func (initOnly) Start(context.Context, string) error          { return nil }
func (initOnly) StartNew(context.Context, string) error       { return nil }
func (initOnly) Stop(context.Context, string) error           { return nil }
func (initOnly) Restart(context.Context, string) error        { return nil }
func (initOnly) Enable(context.Context, string) error         { return nil }
func (initOnly) Disable(context.Context, string) error        { return nil }
func (initOnly) Reload(context.Context) error                 { return nil }
func (initOnly) Active(context.Context, string) (bool, error) { return false, nil }

func freshHost(t *testing.T, init string) Dockerd {
	d := Dockerd{Files: host.Files{Root: t.TempDir()}, Units: initOnly(init)}
	for _, program := range []string{"/usr/sbin/dockerd", "/usr/bin/containerd", "/usr/bin/unshare"} {
		must.NoError(t, d.Files.Write(program, []byte("#!/bin/sh\necho Docker version 28.5.2, build 1\n"), 0o755))
	}
	return d
}

func TestGolden(t *testing.T) {
	for _, init := range []string{"systemd", "sysv", "openrc"} {
		d := freshHost(t, init)
		tree, err := d.tree()
		scripts, scriptsErr := d.containerdScripts()
		must.NoError(t, errors.Join(err, scriptsErr))
		for _, file := range slices.Concat(tree, scripts) {
			hosttest.Golden(t, init+"-"+filepath.Base(file.Path), file.Data)
		}
	}
}

func TestDistributionsContainerdScriptStays(t *testing.T) {
	d := freshHost(t, "sysv")
	must.NoError(t, d.Files.Write(containerdScript, []byte("#!/bin/sh\n# the distribution's\n"), 0o755))
	scripts, err := d.containerdScripts()
	must.NoError(t, err)
	if len(scripts) > 0 {
		t.Error("would replace it")
	}
}

func TestNoDocker(t *testing.T) {
	d := Dockerd{Files: host.Files{Root: t.TempDir()}, Units: initOnly("systemd")}
	if _, err := d.tree(); err == nil || !strings.Contains(err.Error(), "install Docker") {
		t.Errorf("got %v", err)
	}
}

// stuck is a host on which no service stops.
type stuck struct{ initOnly }

func (stuck) Stop(context.Context, string) error { return errors.New("it does not stop") }

// TestTheDataOfARunningContainerdIsKept: a containerd that does not stop uses its data.
func TestTheDataOfARunningContainerdIsKept(t *testing.T) {
	d := freshHost(t, "sysv")
	const data = "/var/lib/containerd/data"
	scripts, err := d.containerdScripts()
	must.NoError(t, errors.Join(err, d.noteStore(), d.Files.Put(scripts), d.Files.Write(data, nil, 0o600)))
	running := d
	running.Units = stuck{"sysv"}
	if err := running.dropContainerd(t.Context()); err == nil || !d.Files.Exists(data) {
		t.Errorf("data kept: %t, %v", d.Files.Exists(data), err)
	}
	if err := d.dropContainerd(t.Context()); err != nil || d.Files.Exists(data) {
		t.Errorf("after it has stopped, data kept: %t, %v", d.Files.Exists(data), err)
	}
}

func TestAnInterruptedInstallOfTheContainerdScriptLeavesNothing(t *testing.T) {
	d := freshHost(t, "sysv")
	left := must.Write(t, d.Files.Path("/etc/init.d/.kube-bootstrap-containerd-123"), "#!")
	must.NoError(t, d.dropContainerd(t.Context()))
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", left, err)
	}
}
