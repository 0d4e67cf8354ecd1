//go:build hosttest

package firewall

import (
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// permitted prints what firewalld and ufw have, as they run and as they are kept.
const permitted = `! systemctl -q is-active firewalld || { firewall-cmd --list-all-zones; firewall-cmd --list-all-policies; }
find /etc/firewalld /etc/ufw/applications.d -type f ! -name '*.old' | sort | xargs md5sum
grep -h tuple /etc/ufw/user.rules /etc/ufw/user6.rules || true
ufw show added`

// TestOnHost holds the step against the contract of steps with the program that runs on this
// machine, which must be a test host: firewalld or ufw.
func TestOnHost(t *testing.T) {
	a := Access{
		Units: initsystem.Open(), Pods: netip.MustParsePrefix("10.1.0.0/16"),
		Ports: []Port{{10250, "tcp"}, {8472, "udp"}, {6443, "tcp"}},
	}
	world := func() string { return run(t, permitted) }
	diff, err := a.Permit().Check(t.Context())
	if err != nil || len(diff) == 0 {
		t.Fatalf("no firewall runs: %q, %v", diff, err)
	}
	t.Log(diff)
	hosttest.Contract(t, world, a.Permit())
	if active, err := a.ufwActive(); err == nil && active {
		before := world()
		flushedUFW(t, a)
		if diff := hosttest.Diff(before, world()); len(diff) > 0 {
			t.Errorf("a flush, its repair and Undo changed %s", diff)
		}
	}
}

// flushedUFW expects that an empty ufw, which drops everything, is filled again.
func flushedUFW(t *testing.T, a Access) {
	must.NoError(t, a.Permit().Apply(t.Context()))
	run(t, "iptables -F")
	must.NoError(t, a.Permit().Apply(t.Context()))
	if diff, err := a.Permit().Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("after a flush and Apply: %q, %v", diff, err)
	}
	run(t, "iptables -C ufw-user-forward -s 10.1.0.0/16 -j ACCEPT && iptables -C FORWARD -j ufw-before-forward")
	must.NoError(t, a.Permit().Undo(t.Context()))
}

func run(t *testing.T, script string) string {
	t.Helper()
	out, err := host.Run(t.Context(), "sh", "-c", script)
	must.NoError(t, err)
	return out
}
