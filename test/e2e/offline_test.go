//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOffline makes the same cluster twice of two hosts that reach only each other: from a
// bundle, and from a private registry.
func TestOffline(t *testing.T) {
	made := disconnected(t)
	t.Run("bundle", func(t *testing.T) { fromBundle(t, made[0], made[1]) })
	t.Run("registry", func(t *testing.T) { fromRegistry(t, made[0], made[1], newRegistry(t, "10.193.20.1")) })
}

// disconnected makes two hosts that reach only each other.
func disconnected(t *testing.T) []machine {
	t.Helper()
	made := hosts(t, "docker-28.5", "10.193.20.0/24", "offline-a", "offline-b")
	for _, m := range made {
		m.sh(t, "ip route del default; : >/etc/resolv.conf")
		owned(t, m)
	}
	return made
}

const loadHost = "kube-bootstrap offline bootstrap "

func fromBundle(t *testing.T, master, worker machine) {
	before := [2]string{master.settledWorld(t), worker.settledWorld(t)}
	watched := watch(t, []machine{master, worker})
	fullDisk(t, worker, loadHost+"--bundle "+bundle)
	killEachStep(t, master, loadHost+"--bundle "+bundle)
	worker.sh(t, loadHost+"--bundle "+bundle)
	for _, m := range []machine{master, worker} {
		was := m.running(t)
		m.sh(t, loadHost+"--bundle "+bundle)
		if is := m.running(t); is != was {
			t.Errorf("%s: run again, offline bootstrap restarted something:\n%s\nthen\n%s", m.name, was, is)
		}
	}
	form(t, master, worker)
	watched.none(t)
	backToBare(t, before, master, worker)
}

// form makes the cluster of hosts that have the images, and asks its DNS.
func form(t *testing.T, master, worker machine) {
	t.Helper()
	master.sh(t, "kube-bootstrap master")
	worker.sh(t, joinCommand(t, master))
	for _, m := range []machine{master, worker} {
		if files := m.sh(t, "find /var/lib/docker/overlay2 /var/lib/containerd -xdev -path '*/bin/hyperkube' -type f -printf '%i\n' | sort -u | wc -l"); files != "1" {
			t.Errorf("%s has %s files of Kubernetes, want one in both image stores", m.name, files)
		}
	}
	podsReady(t, master, 2)
	says(t, time.Minute, "DNS on the worker", worker, resolving+"kubernetes.default.svc.cluster.local", "10.96.0.1")
	for _, m := range []machine{master, worker} {
		// There is no default route: Services need one of their own, after a boot too.
		m.sh(t, "ip route del 10.96.0.0/16 && kube-bootstrap boot && ip route get 10.96.0.1 && bash -c 'exec 3<>/dev/tcp/10.96.0.1/443'")
	}
}

func backToBare(t *testing.T, before [2]string, master, worker machine) {
	t.Helper()
	down(t, worker, master)
	for i, m := range []machine{master, worker} {
		m.sh(t, settled)
		m.sameWorld(t, "offline bootstrap, master or worker, and turndown", before[i])
	}
}

// smallDisk puts a file system of its own, on a loop device where the machine
// has one, under containerd, and fills it but for 150 MB.
const smallDisk = `mv /var/lib/containerd /var/lib/containerd.away; mkdir /var/lib/containerd
[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
for i in 0 1 2 3 4 5 6 7; do [ -e /dev/loop$i ] || mknod /dev/loop$i b 7 $i; done
{ gzip -dc /root/disk.gz | dd of=/var/lib/disk conv=sparse bs=1M && mount -o loop /var/lib/disk /var/lib/containerd; } ||
	mount -t tmpfs -o size=1500m none /var/lib/containerd
fallocate -l $(($(df --output=avail -B1 /var/lib/containerd | tail -n 1) - 150000000)) /var/lib/containerd/ballast`

// fullDisk lets containerd's disk run full in the middle. What was told then
// names the reason, and with room the same command finishes.
func fullDisk(t *testing.T, m machine, run string) {
	t.Helper()
	const mount = "systemctl stop docker.socket docker containerd; %s; systemctl start containerd docker.socket docker"
	disk := filepath.Join(t.TempDir(), "disk")
	local(t, "truncate -s 1500m "+disk+" && mkfs.ext4 -q -m 0 "+disk+" && gzip -1 "+disk)
	m.put(t, disk+".gz", "/root/disk.gz")
	m.sh(t, fmt.Sprintf(mount, smallDisk))
	t.Log("containerd's disk is", m.sh(t, "findmnt -no SOURCE,FSTYPE,SIZE,AVAIL /var/lib/containerd"))
	defer m.sh(t, "kube-bootstrap turndown --yes && "+fmt.Sprintf(mount, "umount /var/lib/containerd; rm -f /var/lib/disk /root/disk.gz; rmdir /var/lib/containerd; mv /var/lib/containerd.away /var/lib/containerd"))
	out, err := m.try(t.Context(), run+" --ignore-preflight disk-space 2>&1")
	if err == nil || !strings.Contains(out, "no space left on device") {
		t.Errorf("on a full disk: %v\n%s", err, out)
	}
	m.sh(t, "rm /var/lib/containerd/ballast && "+run+" --ignore-preflight disk-space")
	if out := m.sh(t, "kube-bootstrap status"); strings.Contains(out, "MISSING") {
		t.Errorf("after a full disk, with room:\n%s", out)
	}
}

// strays are captures of all that the hosts send anywhere but to one another.
type strays []machine

// watch begins to capture what goes to or comes from others. What the kernel
// itself says to its neighbours on the link does not count.
func watch(t *testing.T, all []machine, allowed ...string) strays {
	t.Helper()
	for _, m := range all {
		allowed = append(allowed, m.ip)
	}
	from, to := "src host "+strings.Join(allowed, " or src host "), "dst host "+strings.Join(allowed, " or dst host ")
	filter := fmt.Sprintf("(ip and not igmp and not ((%s) and (%s))) or (ip6 and not dst net ff02::/16)", from, to)
	for _, m := range all {
		m.sh(t, "tcpdump -i eth0 -n -l '"+filter+"' >/run/strays 2>/run/strays.log & echo $! >/run/strays.pid; for i in $(seq 600); do grep -q listening /run/strays.log && exit; sleep 0.1; done; cat /run/strays.log; exit 1")
	}
	return all
}

func (s strays) none(t *testing.T) {
	t.Helper()
	for _, m := range s {
		out := m.sh(t, "kill $(cat /run/strays.pid); sleep 0.2; head -20 /run/strays; rm /run/strays*")
		if out != "" {
			t.Errorf("%s sent or got packets that have no place here:\n%s", m.name, out)
		}
	}
}
