//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
)

// TestOffline makes the same cluster twice of two hosts that reach only each other: from a
// bundle, and from a private registry.
func TestOffline(t *testing.T) {
	made := clusters.Disconnected(t)
	t.Run("bundle", func(t *testing.T) { fromBundle(t, made[0], made[1]) })
	t.Run("registry", func(t *testing.T) { fromRegistry(t, made[0], made[1], registries.NewPrivate(t, "10.193.20.1")) })
}

func fromBundle(t *testing.T, master, worker hosts.Machine) {
	before := [2]string{master.SettledWorld(t), worker.SettledWorld(t)}
	watched := clusters.Watch(t, []hosts.Machine{master, worker})
	fullDisk(t, worker, clusters.LoadHost+"--bundle "+hosts.Bundle)
	clusters.KillEachStep(t, master, clusters.LoadHost+"--bundle "+hosts.Bundle)
	worker.Sh(t, clusters.LoadHost+"--bundle "+hosts.Bundle)
	for _, m := range []hosts.Machine{master, worker} {
		was := m.Running(t)
		m.Sh(t, clusters.LoadHost+"--bundle "+hosts.Bundle)
		if is := m.Running(t); is != was {
			t.Errorf("%s: run again, offline bootstrap restarted something:\n%s\nthen\n%s", m.Name, was, is)
		}
	}
	clusters.Form(t, master, worker)
	watched.None(t)
	clusters.BackToBare(t, before, master, worker)
}

// smallDisk puts a file system of its own, on a loop device where the machine
// has one, under containerd, and fills it but for 150 MB.
const smallDisk = `mv /var/lib/containerd /var/lib/containerd.away; mkdir /var/lib/containerd
[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
for i in 0 1 2 3 4 5 6 7; do [ -e /dev/loop$i ] || mknod /dev/loop$i b 7 $i; done
{ gzip -dc /root/disk.gz | dd of=/var/lib/disk conv=sparse bs=1M &&
	mount -o loop /var/lib/disk /var/lib/containerd; } ||
	mount -t tmpfs -o size=1500m none /var/lib/containerd
fallocate -l $(($(df --output=avail -B1 /var/lib/containerd | tail -n 1) - 150000000)) /var/lib/containerd/ballast`

// fullDisk lets containerd's disk run full in the middle. What was told then
// names the reason, and with room the same command finishes.
func fullDisk(t *testing.T, m hosts.Machine, run string) {
	t.Helper()
	const mount = "systemctl stop docker.socket docker containerd; %s; systemctl start containerd docker.socket docker"
	disk := filepath.Join(t.TempDir(), "disk")
	hosts.LocalScript(t, "truncate -s 1500m "+disk+" && mkfs.ext4 -q -m 0 "+disk+" && gzip -1 "+disk)
	m.Put(t, disk+".gz", "/root/disk.gz")
	m.Sh(t, fmt.Sprintf(mount, smallDisk))
	t.Log("containerd's disk is", m.Sh(t, "findmnt -no SOURCE,FSTYPE,SIZE,AVAIL /var/lib/containerd"))
	defer m.Sh(t, "kube-bootstrap turndown --yes && "+
		fmt.Sprintf(mount, "umount /var/lib/containerd; rm -f /var/lib/disk /root/disk.gz; "+
			"rmdir /var/lib/containerd; mv /var/lib/containerd.away /var/lib/containerd"))
	out, err := m.Try(t.Context(), run+" --ignore-preflight disk-space 2>&1")
	if err == nil || !strings.Contains(out, "no space left on device") {
		t.Errorf("on a full disk: %v\n%s", err, out)
	}
	m.Sh(t, "rm /var/lib/containerd/ballast && "+run+" --ignore-preflight disk-space")
	if out := m.Sh(t, "kube-bootstrap status"); strings.Contains(out, "MISSING") {
		t.Errorf("after a full disk, with room:\n%s", out)
	}
}
