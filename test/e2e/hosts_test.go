//go:build e2e

// Package e2e turns test hosts, containers that behave as machines, into real
// clusters and holds them against what the product promises.
package e2e

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

// bundle is where every test host finds the images.
const bundle = "/opt/kube-bootstrap/bundle.tar.zst"

// built holds what all tests use, made once.
var built struct{ binary, bundle, probe string }

func TestMain(m *testing.M) {
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the tests:", err)
		os.Exit(1)
	}
	code := m.Run()
	reportFailed(os.Stderr)
	os.Exit(code)
}

// prepare builds the program, the images and the probe.
func prepare(ctx context.Context) error {
	dir, err := filepath.Abs("../../_output")
	if err != nil {
		return err
	}
	built.binary = filepath.Join(dir, "kube-bootstrap")
	built.probe = filepath.Join(dir, "probe")
	for _, args := range [][]string{
		{"go", "build", "-trimpath", "-o", built.binary, "../../cmd/kube-bootstrap"},
		{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", built.probe, "./probe"},
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
	built.bundle = build.Bundle
	progress := step.Runner{Emit: func(e step.Event) {
		if e.Kind == step.Started || e.Kind == step.Done {
			fmt.Fprintln(os.Stderr, e.Step, e.Kind)
		}
	}}
	return progress.Do(ctx, build.Plan)
}

// hosts makes bare test hosts of that image, with the program and the probe on
// them, which are removed when the test ends.
func hosts(t *testing.T, hostImage, subnet string, names ...string) []machine {
	t.Helper()
	options := cluster.Options{
		Selection: session.Selection{Name: names[0], Provider: containers.EngineChoice{}},
		Request:   topology.Request{Hosts: names, HostImage: hostImage, Subnet: netip.MustParsePrefix(subnet)},
		Bundle:    built.bundle, Binary: built.binary, KeepImages: true,
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
	var all []machine
	for _, h := range made {
		m := machine{name: h.Name, ip: h.Addr.String()}
		m.put(t, built.binary, "/usr/local/bin/kube-bootstrap")
		m.put(t, built.probe, "/usr/local/bin/probe")
		all = append(all, m)
	}
	return all
}

// owned starts two containers of the user before kube-bootstrap runs: the first
// has a restart policy, the second has none.
func owned(t *testing.T, m machine) {
	t.Helper()
	m.sh(t, "mkdir -p /root/probe && cp /usr/local/bin/probe /root/probe/ && tar -C /root/probe -c . | docker import - "+probeImage)
	m.sh(t, "docker run -d --name owner --restart unless-stopped "+probeImage+" /probe serve && docker run -d --name owner-once "+probeImage+" /probe serve")
}

// up makes a cluster of the two machines.
func up(t *testing.T, master, worker machine, flags string) {
	t.Helper()
	upFrom(t, bundle, master, worker, flags)
}

// upFrom is up with another bundle.
func upFrom(t *testing.T, bundle string, master, worker machine, flags string) {
	t.Helper()
	start := time.Now()
	master.sh(t, "kube-bootstrap master --bundle "+bundle+" "+flags)
	t.Logf("master: %s", time.Since(start).Round(100*time.Millisecond))
	start = time.Now()
	worker.sh(t, joinCommand(t, master)+" --bundle "+bundle)
	t.Logf("worker: %s", time.Since(start).Round(100*time.Millisecond))
	for _, m := range []machine{master, worker} {
		forPods(t, m)
		reloaded(t, m)
	}
}

// forPods gives the image of the probe to containerd, from which pods start.
func forPods(t *testing.T, m machine) {
	t.Helper()
	m.sh(t, "docker save "+probeImage+" | ctr -n k8s.io images import - >/dev/null")
}

// reloaded expects that systemd has read the files and links of every unit that
// kube-bootstrap writes or refers to: otherwise `systemctl status` warns.
func reloaded(t *testing.T, m machine) {
	t.Helper()
	units := m.sh(t, "systemctl show -p Id,NeedDaemonReload docker.service docker.socket containerd.service docker-bootstrap.service 'kube-bootstrap-*'")
	if strings.Contains(units, "NeedDaemonReload=yes") {
		t.Errorf("%s: systemd needs a daemon-reload:\n%s", m.name, units)
	}
}

// joinCommand is what the master tells to type on a worker.
func joinCommand(t *testing.T, master machine) string {
	t.Helper()
	return workerCommand(t, master.sh(t, "kube-bootstrap token create"))
}

// workerCommand finds that command in what token create printed.
func workerCommand(t *testing.T, printed string) string {
	t.Helper()
	for line := range strings.Lines(printed) {
		if strings.Contains(line, "kube-bootstrap worker") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("token create prints no command to join:\n%s", printed)
	return ""
}

// running lists the containers of both engines and of containerd with the time
// they were started: the same before and after means that nothing was touched.
func (m machine) running(t *testing.T) string {
	t.Helper()
	return m.sh(t, `for s in /run/docker.sock /run/docker-bootstrap.sock; do
	docker -H unix://$s ps -q --no-trunc | sort | xargs -r docker -H unix://$s inspect -f '{{.Id}} {{.State.StartedAt}}'
done; ctr -n k8s.io tasks ls -q | sort; pgrep -ax "dockerd|containerd|etcd|flanneld" | sort`)
}

// steady is running once nothing starts or ends any more: a command returns before the last pod
// of CoreDNS has started, and the agents move it when a node has joined.
func (m machine) steady(t *testing.T) (running string) {
	t.Helper()
	const pause = 5 * time.Second
	eventually(t, time.Minute, m.name+" starts and ends nothing", func() error {
		running = m.running(t)
		time.Sleep(pause)
		if is := m.running(t); is != running {
			return fmt.Errorf("within %s:\n%s\nthen\n%s", pause, running, is)
		}
		return nil
	})
	return running
}

// down takes the clusters back, worker first.
func down(t *testing.T, all ...machine) {
	t.Helper()
	for _, m := range all {
		start := time.Now()
		m.sh(t, "kube-bootstrap turndown --yes")
		t.Logf("turndown of %s: %s", m.name, time.Since(start).Round(100*time.Millisecond))
		reloaded(t, m)
	}
}
