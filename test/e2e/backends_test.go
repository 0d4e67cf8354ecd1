//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// backends walks through the backends that life does not: with each one that
// the kernel can do, packets cross and nothing is left; each other one is
// refused by the name of what is missing.
func backends(t *testing.T, master, worker machine) {
	var before []string
	for _, m := range []machine{master, worker} {
		// A start of Docker gives its containers their addresses anew.
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

// settled leaves of the containers only the owner's, all of which run.
const settled = "docker rm -f probe >/dev/null 2>&1; docker start owner-once >/dev/null"

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
