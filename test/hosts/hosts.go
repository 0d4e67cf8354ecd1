// Package hosts makes test hosts: containers that behave as machines. It runs commands on them and
// compares their states.
package hosts

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Bundle is where every test host finds the images.
const Bundle = "/opt/kube-bootstrap/bundle.tar.zst"

// Built holds what all tests use, made once.
var Built struct{ Binary, Bundle, Probe string }

// Main builds what test hosts need, and runs the tests of a package. It returns the exit code.
func Main(m *testing.M) int {
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the tests:", err)
		return 1
	}
	code := m.Run()
	reportFailed(os.Stderr)
	return code
}

// prepare builds the program, the images and the probe.
func prepare(ctx context.Context) error {
	dir, err := filepath.Abs("../../_output")
	if err != nil {
		return err
	}
	Built.Binary = filepath.Join(dir, "kube-bootstrap")
	Built.Probe = filepath.Join(dir, "probe")
	for _, args := range [][]string{
		{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", Built.Binary, "../../cmd/kube-bootstrap"},
		{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", Built.Probe, "../probe"},
	} {
		if _, err := (host.Command{Args: args, Env: []string{"CGO_ENABLED=0"}}).Run(ctx); err != nil {
			return err
		}
	}
	versions, err := image.For("", image.Versions{})
	if err != nil {
		return err
	}
	build, err := offline.NewBuild(ctx, offline.BuildOptions{Versions: versions, Quick: true})
	if err != nil {
		return err
	}
	Built.Bundle = build.Bundle
	progress := step.Runner{Emit: func(e step.Event) {
		if e.Kind == step.Started || e.Kind == step.Done {
			fmt.Fprintln(os.Stderr, e.Step, e.Kind)
		}
	}}
	return progress.Do(ctx, build.Plan)
}

// New makes bare test hosts of that image, with the program and the probe on
// them, which are removed when the test ends.
func New(t *testing.T, hostImage, subnet string, names ...string) []Machine {
	t.Helper()
	options := cluster.Options{
		Selection: session.Selection{Name: names[0], Provider: containers.EngineChoice{}},
		Request:   topology.Request{Hosts: names, HostImage: hostImage, Subnet: netip.MustParsePrefix(subnet)},
		Bundle:    Built.Bundle, Binary: Built.Binary, KeepImages: true,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // it may build the image of the hosts
	defer cancel()
	err := cluster.Clean(ctx, options) // what a killed run left
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "cluster-missing" {
		must.NoError(t, err)
	}
	made, err := cluster.Hosts(ctx, options, nil)
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := cluster.Clean(context.Background(), options); err != nil {
			t.Error(err)
		}
	})
	var all []Machine
	for _, h := range made {
		m := Machine{Name: h.Name, IP: h.Addr.String()}
		m.Put(t, Built.Binary, "/usr/local/bin/kube-bootstrap")
		m.Put(t, Built.Probe, "/usr/local/bin/probe")
		all = append(all, m)
	}
	return all
}

// Owned starts two containers of the user before kube-bootstrap runs: the first
// has a restart policy, the second has none.
func Owned(t *testing.T, m Machine) {
	t.Helper()
	LoadProbe(t, m)
	m.Sh(t, "docker run -d --name owner --restart unless-stopped "+ProbeImage+
		" /probe serve && docker run -d --name owner-once "+ProbeImage+" /probe serve")
}

// Reloaded expects that systemd has read the files and links of every unit that
// kube-bootstrap writes or refers to: otherwise `systemctl status` warns.
func Reloaded(t *testing.T, m Machine) {
	t.Helper()
	units := m.Sh(t, "systemctl show -p Id,NeedDaemonReload docker.service docker.socket containerd.service "+
		"docker-bootstrap.service 'kube-bootstrap-*'")
	if strings.Contains(units, "NeedDaemonReload=yes") {
		t.Errorf("%s: systemd needs a daemon-reload:\n%s", m.Name, units)
	}
}
