//go:build root

package flannel

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
)

func appliedFilter(t *testing.T) filterState {
	t.Helper()
	f := testFilter().filter([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, []string{"192.0.2.3", "192.0.2.4"})
	if err := netfilter.SetNftTable(t.Context(), f.table); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestHostFilterIsRestored damages the filter in each way.
func TestHostFilterIsRestored(t *testing.T) {
	hosttest.InNetns(t)
	const replace = "replace the filter of hosts"
	for do, want := range map[string]string{
		"true":              "",
		"nft flush ruleset": replace,
		"nft flush chain inet kube-bootstrap-hosts etcd":                   replace,
		"nft delete element inet kube-bootstrap-hosts hosts { 192.0.2.2 }": "accept hosts from 192.0.2.2",
		"nft add element inet kube-bootstrap-hosts control-planes { 192.0.2.9 }": "no longer accept control-planes " +
			"from 192.0.2.9",
		"nft flush set inet kube-bootstrap-hosts control-planes": "accept control-planes from 192.0.2.3; accept " +
			"control-planes from 192.0.2.4",
		"iptables -A INPUT -p tcp --dport 22 -j ACCEPT\niptables -F": "",
	} {
		f := appliedFilter(t)
		hosttest.Shell(t, do)
		diff, err := f.diff(t.Context())
		if err != nil || diff.String() != want {
			t.Errorf("%s: got %q, %v; want %q", do, diff, err, want)
		}
	}
	for range 2 {
		if err := testFilter().Step().Undo(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := Left(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestHostFilterWithoutControlPlanes: the first host of a cluster is not listed yet.
func TestHostFilterWithoutControlPlanes(t *testing.T) {
	hosttest.InNetns(t)
	f := testFilter().filter([]string{"192.0.2.1"}, nil)
	if err := netfilter.SetNftTable(t.Context(), f.table); err != nil {
		t.Fatal(err)
	}
	if diff, err := f.diff(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("got %q, %v", diff, err)
	}
}

// TestHostFilterOnABareHost: a dry run lists the filter before the host has a
// certificate for etcd.
func TestHostFilterOnABareHost(t *testing.T) {
	hosttest.InNetns(t)
	f := testFilter()
	f.Etcd = EtcdAccess{CA: "/nowhere/ca.crt", Cert: "/nowhere/flannel.crt", Key: "/nowhere/flannel.key"}
	if diff, err := f.Step().Check(t.Context()); err != nil || diff.String() != "add the filter of hosts" {
		t.Errorf("got %q, %v", diff, err)
	}
}

// TestHostFilterIsRemoved: with 0.0.0.0/0, an existing filter is removed.
func TestHostFilterIsRemoved(t *testing.T) {
	hosttest.InNetns(t)
	appliedFilter(t)
	g := testFilter()
	g.Trusted = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	if diff, err := g.Step().Check(t.Context()); err != nil || diff.String() != "remove the filter of hosts" {
		t.Errorf("got %q, %v", diff, err)
	}
	if err := g.Step().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := Left(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestHostFilterDropsPacketsOfOtherHosts sends packets to each port from each kind of
// address, as another machine of the network would.
func TestHostFilterDropsPacketsOfOtherHosts(t *testing.T) {
	hosttest.InNetns(t)
	neighbour := fmt.Sprintf("kb-filter-%d", os.Getpid())
	hosttest.Shell(t, "ip netns add "+neighbour)
	t.Cleanup(func() { hosttest.Shell(t, "ip netns del "+neighbour) })
	hosttest.Shell(t, "ip link set lo up\nip link add eth0 type veth peer name eth0 netns "+neighbour)
	hosttest.Shell(t, "ip addr add 192.0.2.1/24 dev eth0\nip link set eth0 up\nip route add default dev eth0\nip -n "+
		neighbour+" link set eth0 up")
	for _, address := range []string{"192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.99", "198.51.100.7", "10.1.9.5"} {
		hosttest.Shell(t, "ip -n "+neighbour+" addr add "+address+"/24 dev eth0")
	}
	appliedFilter(t)
	overlay, err := net.ListenPacket("udp4", "192.0.2.1:8472")
	if err != nil {
		t.Fatal(err)
	}
	defer overlay.Close()
	for _, port := range []string{"10250", "2379", "2380", "6443"} {
		l, err := net.Listen("tcp4", "192.0.2.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	for _, c := range []struct{ from, open string }{
		// not a host of the cluster; it may be a control plane that joins
		{"192.0.2.99", "2379 6443"},
		{"192.0.2.2", "8472 10250 6443"},           // a worker
		{"192.0.2.3", "8472 10250 2379 2380 6443"}, // a control plane
		// a second address of a control plane, or a control plane without a lease
		{"192.0.2.4", "10250 2379 2380 6443"},
		{"10.1.9.5", "10250 6443"},                    // a pod
		{"198.51.100.7", "8472 10250 2379 2380 6443"}, // a trusted network
	} {
		hosttest.Shell(t, "ip -n "+neighbour+" route replace 192.0.2.1/32 dev eth0 src "+c.from)
		var open []string
		if arrives(t, neighbour, overlay) {
			open = append(open, "8472")
		}
		for _, port := range []string{"10250", "2379", "2380", "6443"} {
			limit := "0.3"
			if strings.Contains(c.open, port) {
				limit = "20"
			}
			if inNeighbour(neighbour, "timeout "+limit+" bash -c 'exec 3<>/dev/tcp/192.0.2.1/"+port+"'") == nil {
				open = append(open, port)
			}
		}
		if got := strings.Join(open, " "); got != c.open {
			t.Errorf("from %s: open %q, want %q", c.from, got, c.open)
		}
	}
	if conn, err := net.Dial("tcp4", "192.0.2.1:2380"); err != nil {
		t.Error("the host itself:", err)
	} else {
		conn.Close()
	}
}

// arrives sends a packet to the overlay's port from the current source, and
// after it one from a host, which always arrives.
func arrives(t *testing.T, neighbour string, overlay net.PacketConn) bool {
	t.Helper()
	if err := inNeighbour(neighbour,
		"echo tested >/dev/udp/192.0.2.1/8472; s=$(ip route get 192.0.2.1 | sed -n 's/.* src \\([^ ]*\\).*/\\1/p'); "+
			"ip route replace 192.0.2.1/32 dev eth0 src 192.0.2.2; echo last >/dev/udp/192.0.2.1/8472; ip route "+
			"replace 192.0.2.1/32 dev eth0 src $s"); err != nil {
		t.Fatal(err)
	}
	arrived := false
	for buffer := make([]byte, 64); ; {
		n, _, err := overlay.ReadFrom(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if string(buffer[:n]) == "last\n" {
			return arrived
		}
		arrived = true
	}
}

func inNeighbour(name, script string) error {
	return exec.Command("ip", "netns", "exec", name, "bash", "-c", script).Run()
}

// TestPodsSendNoPacketsInTheNameOfTheirHost: flanneld masquerades what pods send to other hosts.
func TestPodsSendNoPacketsInTheNameOfTheirHost(t *testing.T) {
	hosttest.InNetns(t)
	other, pod := fmt.Sprintf("kb-other-%d", os.Getpid()), fmt.Sprintf("kb-pod-%d", os.Getpid())
	for _, name := range []string{other, pod} {
		hosttest.Shell(t, "ip netns add "+name)
		t.Cleanup(func() { hosttest.Shell(t, "ip netns del "+name) })
	}
	hosttest.Shell(t, `sysctl -qw net.ipv4.ip_forward=1
ip link set lo up
ip link add eth0 type veth peer name eth0 netns `+other+`
ip link add pods type veth peer name eth0 netns `+pod+`
ip addr add 192.0.2.1/24 dev eth0
ip addr add 10.1.7.1/24 dev pods
ip addr add 172.20.0.1/24 dev pods
ip link set eth0 up
ip link set pods up
ip -n `+other+` addr add 192.0.2.2/24 dev eth0
ip -n `+other+` addr add 192.0.2.4/24 dev eth0
ip -n `+other+` link set eth0 up
ip -n `+pod+` addr add 10.1.7.5/24 dev eth0
ip -n `+pod+` addr add 172.20.0.5/24 dev eth0
ip -n `+pod+` link set eth0 up
ip -n `+pod+` route add default via 10.1.7.1
nft add table ip outward
nft add chain ip outward postrouting { type nat hook postrouting priority 100; }
nft add rule ip outward postrouting oif eth0 masquerade
ip netns exec `+other+` nft add table ip seen
ip netns exec `+other+` nft add chain ip seen input { type filter hook input priority 0; }`)
	appliedFilter(t)
	arrives := func(to string, want bool) {
		t.Helper()
		hosttest.Shell(t, "ip netns exec "+other+" nft flush chain ip seen input\nip netns exec "+other+
			" nft add rule ip seen input ip saddr 192.0.2.1 meta l4proto { tcp, udp } th dport { 2379, 2380, 8472, "+
			"9999 } counter")
		// nobody listens
		_ = exec.Command("timeout", "0.5", "ip", "netns", "exec", pod, "bash", "-c", "echo x >/dev/"+to).Run()
		seen, err := exec.Command("ip", "netns", "exec", other, "nft", "list", "ruleset").CombinedOutput()
		if arrived := !strings.Contains(string(seen), "packets 0 "); arrived != want || err != nil {
			t.Errorf("%s: a packet of a pod arrives: %t, %v\n%s", to, arrived, err, seen)
		}
	}
	for to, open := range map[string]bool{
		"udp/192.0.2.2/8472": false, "tcp/192.0.2.4/2379": false, "tcp/192.0.2.4/2380": false,
		"udp/192.0.2.2/9999": true, "tcp/192.0.2.4/9999": true,
	} {
		arrives(to, open)
	}
	hosttest.Shell(t, "ip -n "+pod+" route replace default via 172.20.0.1 src 172.20.0.5") // a network of the user
	arrives("udp/192.0.2.2/9999", true)
	arrives("udp/192.0.2.2/8472", false)
}

func testFilter() HostFilter {
	return HostFilter{
		Backend: "vxlan", PublicIP: netip.MustParseAddr("192.0.2.1"), Network: netip.MustParsePrefix("10.1.0.0/16"),
		Trusted: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("198.51.0.0/16")}, KubeletPort: 10250, PeerPort: 2380, ClientPort: 2379,
	}
}

// TestNoHostFilterWithoutNft: nobody can write the filter, which preflight reports.
func TestNoHostFilterWithoutNft(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if diff, err := testFilter().Step().Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("got %q, %v", diff, err)
	}
}
