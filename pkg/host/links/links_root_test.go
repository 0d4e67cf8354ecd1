//go:build root

package links_test

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// within runs the rest of the test in a network namespace with a pair of
// interfaces, eth0 (10.5.0.1/24) and eth1, and without a default route.
func within(t *testing.T) {
	t.Helper()
	hosttest.InNetns(t)
	hosttest.Shell(t, `ip link set lo up
		ip link add eth0 type veth peer name eth1
		ip addr add 10.5.0.1/24 dev eth0
		ip link set eth0 up
		ip link set eth1 up`)
}

func find(t *testing.T, name string) links.Link {
	t.Helper()
	link, ok, err := links.Find(name)
	if err != nil || !ok {
		t.Fatalf("find %s: %v, %v", name, ok, err)
	}
	return link
}

func TestFindAndDelete(t *testing.T) {
	within(t)
	eth0 := find(t, "eth0")
	if eth0.Type != "veth" || !eth0.Up || eth0.MTU != 1500 || eth0.MAC == "" ||
		!slices.Equal(eth0.Addrs, []netip.Prefix{netip.MustParsePrefix("10.5.0.1/24")}) {
		t.Errorf("found %+v", eth0)
	}
	all, err := links.All()
	if err != nil || len(all) != 3 {
		t.Errorf("all: %+v, %v", all, err)
	}
	for range 2 { // the second time, the interface is missing
		must.NoError(t, links.Delete("eth0"))
	}
	if _, ok, err := links.Find("eth1"); ok || err != nil {
		t.Errorf("the peer of a deleted interface: %v, %v", ok, err)
	}
}

func TestDefault(t *testing.T) {
	within(t)
	for _, c := range []struct{ change, want string }{
		{"", "eth0"}, // the only interface with an address
		{"ip addr add 10.6.0.1/24 dev eth1", ""},
		{"ip route add default via 10.6.0.2 dev eth1", "eth1"},
	} {
		hosttest.Shell(t, c.change)
		got, err := links.Default()
		if got.Name != c.want || (err != nil) != (c.want == "") {
			t.Errorf("after %q: %q, %v; want %q", c.change, got.Name, err, c.want)
		}
	}
}

// TestDefaultOfSeveralNextHops: the route itself has no interface then, like a route that
// rejects packets.
func TestDefaultOfSeveralNextHops(t *testing.T) {
	within(t)
	hosttest.Shell(t, `ip addr add 10.6.0.1/24 dev eth1
		ip route add unreachable default metric 5
		ip route add default metric 10 nexthop via 10.6.0.2 weight 1 nexthop via 10.5.0.2 weight 1`)
	if link, err := links.Default(); err != nil || link.Name != "eth1" || len(link.Addrs) == 0 {
		t.Errorf("got %+v, %v", link, err)
	}
}

func TestSetBridge(t *testing.T) {
	within(t)
	for _, c := range []struct {
		addr string
		mtu  int
	}{{"10.7.1.1/24", 1400}, {"10.7.2.1/24", 1450}} {
		addr := netip.MustParsePrefix(c.addr)
		must.NoError(t, links.SetBridge("br", addr, c.mtu))
		if got := find(t, "br"); got.Type != "bridge" || got.MTU != c.mtu ||
			!slices.Equal(got.Addrs, []netip.Prefix{addr}) {
			t.Errorf("the bridge is %+v, want %s with MTU %d", got, addr, c.mtu)
		}
	}
	must.NoError(t, links.AttachToBridge("eth1", "br"))
	ports, ok, err := links.BridgePorts("br")
	if err != nil || !ok || !ports["eth1"] || ports["eth0"] || ports["br"] {
		t.Errorf("ports: %v, %v, %v", ports, ok, err)
	}
	if _, ok, err := links.BridgePorts("none"); ok || err != nil {
		t.Errorf("the ports of a missing bridge: %v, %v", ok, err)
	}
	if err := links.AttachToBridge("eth1", "none"); err == nil {
		t.Error("a missing bridge is accepted")
	}
}

// Links come and go with every container, also while another list is read.
func TestListsAreCompleteWhileLinksChange(t *testing.T) {
	within(t)
	must.NoError(t, batch(`for i in $(seq 200); do echo "link add d$i type bridge"; echo "addr add 10.6.$i.1/24 dev d$i"; echo "link set d$i up"; done`).Run())
	changes := batch(`while :; do for i in $(seq 50); do
		echo "link add c$i type bridge"; echo "addr add 10.8.$i.1/24 dev c$i"; echo "link set c$i up"; echo "link del c$i"; done; done`)
	must.NoError(t, changes.Start())
	defer func() {
		_ = syscall.Kill(-changes.Process.Pid, syscall.SIGKILL)
		_ = changes.Wait()
	}()
	for range 50 {
		all, err := links.All()
		must.NoError(t, err)
		if len(all) < 203 {
			t.Fatalf("%d links, want at least 203", len(all))
		}
		routes, err := links.Routes()
		must.NoError(t, err)
		if len(routes) < 200 {
			t.Fatalf("%d routes, want at least 200", len(routes))
		}
		_, ok, err := links.Find("d200")
		if err != nil || !ok {
			t.Fatalf("find d200: %v, %v", ok, err)
		}
		must.NoError(t, links.SetBridge("br0", netip.MustParsePrefix("10.7.0.1/24"), 1500))
		_, _, err = links.BridgePorts("br0")
		must.NoError(t, err)
	}
}

// batch gives the lines that a script prints to ip, which runs them in the network
// namespace of the test.
func batch(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", "("+script+") | ip -batch -")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all of it can be killed
	return cmd
}

func TestDeleteInto(t *testing.T) {
	within(t)
	const name = "kb-links-test"
	t.Cleanup(func() { hosttest.Shell(t, "ip netns del "+name) })
	hosttest.Shell(t, `ip netns add `+name+`
		ip link add pod0 type veth peer name eth0 netns `+name+`
		ip link add other type veth peer name other0`)
	for range 2 { // the second time, none is left
		must.NoError(t, links.DeleteInto("/run/netns/"+name))
	}
	if _, ok, err := links.Find("pod0"); ok || err != nil {
		t.Errorf("the interface of the namespace: %v, %v", ok, err)
	}
	find(t, "other")
	find(t, "eth0")

	stale := must.Write(t, filepath.Join(t.TempDir(), "cni-1"), "")
	if err := links.DeleteInto(stale); err != nil {
		t.Errorf("a file that is not a namespace: %v", err)
	}
}
