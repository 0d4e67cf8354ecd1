//go:build e2e

package long

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// ownKernel is a machine with a kernel of its own: modules, sysctls and policies of chains are not
// those of the host that runs the tests. Each system call takes several times as long as there.
type ownKernel struct {
	hosts.Machine
	dir  string // with the kernel, the disk and the SSH key
	runs *exec.Cmd
}

// TestOwnKernel makes a cluster of machines with a kernel of their own and Debian's Docker, with the
// default settings. No container hides what turndown leaves, and a power cut loses what is not on disk.
func TestOwnKernel(t *testing.T) {
	wait.Patience *= 5
	defer func() { wait.Patience /= 5 }()
	made := ownKernels(t, "own-a", "own-b")
	master, worker := made[0].Machine, made[1].Machine
	var before []string
	for _, m := range made {
		hosts.Owned(t, m.Machine)
		before = append(before, m.SettledWorld(t))
	}
	clusters.Up(t, master, worker, "")
	t.Run("a second run touches nothing", func(t *testing.T) { clusters.Again(t, master, worker) })
	t.Run("packets", func(t *testing.T) { traffic.Packets(t, master, master, worker) })
	ownKernelsReturn(t, made)
	t.Run("rules flushed", func(t *testing.T) {
		worker.Sh(t, "nft flush ruleset")
		traffic.PacketsAgain(t, master, master, worker)
	})
	for _, m := range made {
		m.Sh(t, clusters.Settled)
	}
	clusters.Down(t, worker, master)
	for i, m := range made {
		m.SameWorld(t, "master or worker, then turndown,", before[i])
	}
}

// ownKernelsReturn ends both machines in each way, and expects the cluster to return without a command.
func ownKernelsReturn(t *testing.T, made []*ownKernel) {
	t.Helper()
	master, worker := made[0].Machine, made[1].Machine
	leases := clusters.Subnets(t, master, worker)
	clusters.Spread(t, master)
	for _, end := range []struct {
		name string
		of   func(*ownKernel, *testing.T)
	}{{"reboot", (*ownKernel).shutDown}, {"power cut", (*ownKernel).cutPower}} {
		t.Run(end.name, func(t *testing.T) {
			clusters.ComesBack(t, master, worker, leases, func(t *testing.T) { bootAgain(t, made, end.of) })
			traffic.PacketsAgain(t, master, master, worker)
		})
	}
}

// bootAgain ends all machines before it boots the first one.
func bootAgain(t *testing.T, made []*ownKernel, end func(*ownKernel, *testing.T)) {
	t.Helper()
	for _, m := range made {
		end(m, t)
	}
	boot(t, made)
}

// boot returns once the Docker of each machine answers.
func boot(t *testing.T, made []*ownKernel) {
	t.Helper()
	for _, m := range made {
		m.start(t)
	}
	for _, m := range made {
		hosts.Soon(t, time.Minute, "Docker of "+m.Name, m.Machine, "docker version")
	}
}

// ownKernels boots machines that have the program, the probe and a bundle.
func ownKernels(t *testing.T, names ...string) (made []*ownKernel) {
	t.Helper()
	dir := ownKernelDir(t)
	t.Cleanup(func() { _, _ = host.Run(context.Background(), "ip", "netns", "delete", hosts.OwnKernelSpace) })
	for i, name := range names {
		m := &ownKernel{dir: dir, Machine: hosts.OwnKernel(name, fmt.Sprintf("10.139.0.%d", i+2), filepath.Join(dir, "id"))}
		must.NoError(t, os.RemoveAll(filepath.Join(dir, name+".disk")))
		t.Cleanup(func() { m.cutPower(t) })
		made = append(made, m)
	}
	boot(t, made)
	for _, m := range made {
		m.Put(t, hosts.Built.Binary, "/usr/local/bin/kube-bootstrap")
		m.Put(t, hosts.Built.Probe, "/usr/local/bin/probe")
		m.Put(t, hosts.Built.Bundle, hosts.Bundle)
	}
	return made
}

// ownKernelDir has the kernel, its modules and the disk. A script builds each when it is missing.
func ownKernelDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	must.NoError(t, err)
	dir := filepath.Join(cache, "kube-bootstrap", "ownkernel")
	must.NoError(t, os.MkdirAll(dir, 0o755))
	mirror, err := host.DebianMirror()
	must.NoError(t, err)
	for _, part := range []struct{ script, makes string }{{"kernel.sh", "linux"}, {"disk.sh", "disk"}} {
		if _, err := os.Stat(filepath.Join(dir, part.makes)); err == nil {
			continue
		}
		started := time.Now()
		_, err := host.Command{Args: []string{"ownkernel/" + part.script, dir, mirror}}.Run(t.Context())
		must.NoError(t, err)
		t.Logf("%s: %s", part.script, time.Since(started).Round(time.Second))
	}
	return dir
}

// start boots the machine.
func (m *ownKernel) start(t *testing.T) {
	t.Helper()
	console, err := os.Create(filepath.Join(m.dir, m.Name+".console"))
	must.NoError(t, err)
	defer console.Close()
	m.runs = exec.Command("ownkernel/boot.sh", m.dir, hosts.OwnKernelSpace, m.Name, m.IP)
	m.runs.Stdout, m.runs.Stderr = console, console
	must.NoError(t, m.runs.Start())
}

// cutPower ends the machine at once. What is not on its disk is lost.
func (m *ownKernel) cutPower(*testing.T) {
	if m.runs != nil {
		_ = m.runs.Process.Kill() // an error: it has ended already
		_ = m.runs.Wait()         // always an error: it was killed
	}
}

// shutDown returns once the machine has ended by itself.
func (m *ownKernel) shutDown(t *testing.T) {
	t.Helper()
	_, _ = m.Try(t.Context(), "systemctl poweroff") // ends its own connection
	ended := make(chan error, 1)
	go func() { ended <- m.runs.Wait() }()
	select {
	case <-ended:
	case <-time.After(wait.Patience * time.Minute):
		t.Fatalf("%s does not shut down", m.Name)
	}
}
