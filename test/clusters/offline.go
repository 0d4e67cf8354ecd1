package clusters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// Disconnected makes two hosts that reach only each other.
func Disconnected(t *testing.T) []hosts.Machine {
	t.Helper()
	made := hosts.New(t, "docker-28.5", "10.193.20.0/24", "offline-a", "offline-b")
	for _, m := range made {
		m.Sh(t, "ip route del default; : >/etc/resolv.conf")
		hosts.Owned(t, m)
	}
	return made
}

// LoadHost loads the images of a host.
const LoadHost = "kube-bootstrap offline bootstrap "

// Form makes the cluster of hosts that have the images, and asks its DNS.
func Form(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	master.Sh(t, "kube-bootstrap master")
	worker.Sh(t, JoinCommand(t, master))
	for _, m := range []hosts.Machine{master, worker} {
		if files := m.Sh(t, "find /var/lib/docker/overlay2 /var/lib/containerd -xdev -path '*/bin/hyperkube' -type f "+
			"-printf '%i\n' | sort -u | wc -l"); files != "1" {
			t.Errorf("%s has %s files of Kubernetes, want one in both image stores", m.Name, files)
		}
	}
	PodsReady(t, master, 2)
	hosts.Says(t, time.Minute, "DNS on the worker", worker, traffic.Resolving+"kubernetes.default.svc.cluster.local",
		"10.96.0.1")
	for _, m := range []hosts.Machine{master, worker} {
		// There is no default route: Services need one of their own, after a boot too.
		m.Sh(t, "ip route del 10.96.0.0/16 && kube-bootstrap boot && ip route get 10.96.0.1 && "+
			"bash -c 'exec 3<>/dev/tcp/10.96.0.1/443'")
	}
}

// BackToBare turns the hosts down and expects them to be as before.
func BackToBare(t *testing.T, before [2]string, master, worker hosts.Machine) {
	t.Helper()
	Down(t, worker, master)
	for i, m := range []hosts.Machine{master, worker} {
		m.Sh(t, Settled)
		m.SameWorld(t, "offline bootstrap, master or worker, and turndown", before[i])
	}
}

// Watch begins to capture what goes to or comes from others. What the kernel
// itself says to its neighbours on the link does not count.
func Watch(t *testing.T, all []hosts.Machine, allowed ...string) Strays {
	t.Helper()
	for _, m := range all {
		allowed = append(allowed, m.IP)
	}
	from, to := "src host "+strings.Join(allowed, " or src host "), "dst host "+strings.Join(allowed, " or dst host ")
	filter := fmt.Sprintf("(ip and not igmp and not ((%s) and (%s))) or (ip6 and not dst net ff02::/16)", from, to)
	for _, m := range all {
		m.Sh(t, "tcpdump -i eth0 -n -l '"+filter+"' >/run/strays 2>/run/strays.log & echo $! >/run/strays.pid; "+
			"for i in $(seq 600); do grep -q listening /run/strays.log && exit; sleep 0.1; done; "+
			"cat /run/strays.log; exit 1")
	}
	return all
}

// Strays are captures of all that the hosts send anywhere but to one another.
type Strays []hosts.Machine

// None fails the test if the hosts have sent anything elsewhere.
func (s Strays) None(t *testing.T) {
	t.Helper()
	for _, m := range s {
		out := m.Sh(t, "kill $(cat /run/strays.pid); sleep 0.2; head -20 /run/strays; rm /run/strays*")
		if out != "" {
			t.Errorf("%s sent or got packets that have no place here:\n%s", m.Name, out)
		}
	}
}
