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

// permitted prints what firewalld has, as it runs and as it is kept.
const permitted = `firewall-cmd --list-all-zones; firewall-cmd --list-all-policies
find /etc/firewalld -type f ! -name '*.old' | sort | xargs md5sum`

// TestOnHost holds the step against the contract of steps on this machine, which must be a
// test host with firewalld.
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
}

func run(t *testing.T, script string) string {
	t.Helper()
	out, err := host.Run(t.Context(), "sh", "-c", script)
	must.NoError(t, err)
	return out
}
