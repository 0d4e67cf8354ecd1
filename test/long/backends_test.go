//go:build e2e

package long

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// backends tries the flannel backends that the other tests do not use. With each
// backend that the kernel supports, packets cross and turndown leaves nothing; each
// other backend is refused with the name of the missing part.
func backends(t *testing.T, master, worker hosts.Machine) {
	var before []string
	for _, m := range []hosts.Machine{master, worker} {
		// Docker assigns new addresses to its containers when it starts.
		m.Sh(t, "docker rm -f probe >/dev/null 2>&1; systemctl restart docker; "+clusters.Settled)
		before = append(before, m.World(t))
	}
	for _, b := range []struct{ name, module string }{{"udp", "tun"}, {"ipip", "ipip"}, {"wireguard", "wireguard"}} {
		t.Run(b.name, func(t *testing.T) {
			if !offered(t, master, b.module) {
				refuseBackend(t, master, b.name, b.module)
				master.SameWorld(t, "a backend that was refused", before[0])
				return
			}
			clusters.Up(t, master, worker, "--flannel-backend "+b.name)
			ends := traffic.StartProbes(t, master, master, worker)
			traffic.Matrix(t, master, ends)
			traffic.BigTransfer(t, traffic.Container(ends, master), traffic.Container(ends, worker))
			for i, m := range []hosts.Machine{worker, master} {
				m.Sh(t, clusters.Settled)
				clusters.Down(t, m)
				m.SameWorld(t, b.name+", then turndown,", before[1-i])
			}
		})
	}
}

// offered asks the kernel itself: ip(8) makes a link where nobody sees it, and
// a character device stands for tun.
func offered(t *testing.T, m hosts.Machine, module string) bool {
	t.Helper()
	return m.Sh(t, "grep -qw "+module+" /proc/misc || unshare -n ip link add probe type "+module+
		" 2>/dev/null && echo yes || echo no") == "yes"
}

func refuseBackend(t *testing.T, m hosts.Machine, backend, module string) {
	t.Helper()
	code, says := m.Ask(t, "", hosts.AsMaster+" --flannel-backend "+backend, hosts.Bundle)
	names := hosts.ProblemNames(says)
	if code != "3" || len(names) != 1 || names[0] != "backend-module" ||
		!strings.Contains(says, "kernel module "+module+",") {
		t.Errorf("exit code %s, problems %q, want backend-module about %s:\n%s", code, names, module, says)
	}
}
