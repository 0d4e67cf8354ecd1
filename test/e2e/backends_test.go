//go:build e2e && long

package e2e

import (
	"strings"
	"testing"
)

// backends tries the flannel backends that the other tests do not use. With each
// backend that the kernel supports, packets cross and turndown leaves nothing; each
// other backend is refused with the name of the missing part.
func backends(t *testing.T, master, worker machine) {
	var before []string
	for _, m := range []machine{master, worker} {
		// Docker assigns new addresses to its containers when it starts.
		m.sh(t, "docker rm -f probe >/dev/null 2>&1; systemctl restart docker; "+settled)
		before = append(before, m.world(t))
	}
	for _, b := range []struct{ name, module string }{{"udp", "tun"}, {"ipip", "ipip"}, {"wireguard", "wireguard"}} {
		t.Run(b.name, func(t *testing.T) {
			if !offered(t, master, b.module) {
				refuseBackend(t, master, b.name, b.module)
				master.sameWorld(t, "a backend that was refused", before[0])
				return
			}
			up(t, master, worker, "--flannel-backend "+b.name)
			ends := startProbes(t, master, master, worker)
			matrix(t, master, ends)
			bigTransfer(t, container(ends, master), container(ends, worker))
			for i, m := range []machine{worker, master} {
				m.sh(t, settled)
				down(t, m)
				m.sameWorld(t, b.name+", then turndown,", before[1-i])
			}
		})
	}
}

// offered asks the kernel itself: ip(8) makes a link where nobody sees it, and
// a character device stands for tun.
func offered(t *testing.T, m machine, module string) bool {
	t.Helper()
	return m.sh(t, "grep -qw "+module+" /proc/misc || unshare -n ip link add probe type "+module+" 2>/dev/null && echo yes || echo no") == "yes"
}

func refuseBackend(t *testing.T, m machine, backend, module string) {
	t.Helper()
	code, says := m.ask(t, "", asMaster+" --flannel-backend "+backend, bundle)
	names := problemNames(says)
	if code != "3" || len(names) != 1 || names[0] != "backend-module" || !strings.Contains(says, "kernel module "+module+",") {
		t.Errorf("exit code %s, problems %q, want backend-module about %s:\n%s", code, names, module, says)
	}
}
