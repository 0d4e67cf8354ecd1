//go:build root

package maindocker

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPackets sends packets through the rules of a Docker that isolates the containers of
// docker0 ("icc": false) and each network from the others, with both of its firewalls. It
// drops answers between networks too, as Docker before 28.1 does.
func TestPackets(t *testing.T) {
	for backend, docker := range map[string]string{"iptables": isolatingIptables, "nftables": isolatingNftables} {
		t.Run(backend, func(t *testing.T) {
			hosttest.InNetns(t)
			attach(t)
			hosttest.Shell(t, translations)
			if backend == "nftables" {
				must.NoError(t, exec.Command("nft", docker).Run())
			} else {
				hosttest.Shell(t, docker)
			}
			daemon := settings{"firewall-backend": backend, acceptMark: ourMark}
			must.NoError(t, firewallFor("flannel.1", lease, hosts, daemon).apply(t.Context()))
			for _, p := range paths {
				if passes := connects(p.from, p.to, p.passes); passes != p.passes {
					t.Errorf("%s to %s passes: %t, want %t", p.from, p.to, passes, p.passes)
				}
			}
		})
	}
}

// paths: 192.168.1.1 is the host. It translates packets from outside to the first pod, and
// those of docker0 to app, as a published port does.
var paths = []struct {
	from, to string
	passes   bool
}{
	{"outside", "192.168.1.1", true},
	{"outside", "10.1.7.130", false},
	{"outside", "10.1.7.2", false},
	{"pod", "10.1.7.131", true},
	{"pod", "10.1.7.2", true},
	{"container", "10.1.7.130", true},
	{"container", "10.1.7.3", false},
	{"pod", "192.168.1.1", true},
	{"container", "192.168.1.1", true},
	{"pod", "172.18.0.2", false},
	{"app", "10.1.7.130", false},
	{"app", "192.168.1.2", true},
	{"app", "10.1.7.2", false},
}

func namespace(name string) string { return fmt.Sprintf("kb-packets-%d-%s", os.Getpid(), name) }

func connects(from, to string, wanted bool) bool {
	limit := "0.5"
	if wanted {
		limit = "10"
	}
	return exec.Command("ip", "netns", "exec", namespace(from), "timeout", limit, "bash", "-c",
		"exec 3<>/dev/tcp/"+to+"/80").Run() == nil
}

// serve listens on port 80 in a network namespace.
func serve(t *testing.T, name string) {
	t.Helper()
	listening := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the function
		ns, err := netns.GetFromName(name)
		if err != nil {
			listening <- err
			return
		}
		defer ns.Close()
		if err = netns.Set(ns); err == nil {
			var l net.Listener
			if l, err = net.Listen("tcp4", ":80"); err == nil {
				t.Cleanup(func() { l.Close() })
			}
		}
		listening <- err
	}()
	must.NoError(t, <-listening)
}

// attach creates the bridges of a host, and a network namespace for each end.
func attach(t *testing.T) {
	t.Helper()
	hosttest.Shell(t, `ip link set lo up
		sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
		ip link add docker0 type bridge
		ip link add br-app type bridge
		ip link add lan type bridge
		ip addr add 10.1.7.1/24 dev docker0
		ip addr add 172.18.0.1/16 dev br-app
		ip addr add 192.168.1.1/24 dev lan
		ip addr add 192.168.1.2/24 dev lan
		ip link set docker0 up
		ip link set br-app up
		ip link set lan up`)
	for name, at := range map[string]struct{ bridge, address, gateway string }{
		"pod": {"docker0", "10.1.7.130/24", "10.1.7.1"}, "pod2": {"docker0", "10.1.7.131/24", "10.1.7.1"},
		"container": {"docker0", "10.1.7.2/24", "10.1.7.1"}, "container2": {"docker0", "10.1.7.3/24", "10.1.7.1"},
		"app": {"br-app", "172.18.0.2/16", "172.18.0.1"}, "outside": {"lan", "192.168.1.9/24", "192.168.1.1"},
	} {
		ns := namespace(name)
		hosttest.Shell(t, "ip netns add "+ns)
		t.Cleanup(func() { hosttest.Shell(t, "ip netns del "+ns) })
		hosttest.Shell(t, strings.NewReplacer("NS", ns, "LINK", "v-"+name).
			Replace(`ip link add LINK type veth peer name eth0 netns NS
			ip link set LINK master `+at.bridge+` up
			ip -n NS addr add `+at.address+` dev eth0
			ip -n NS link set eth0 up
			ip -n NS route add default via `+at.gateway))
		serve(t, ns)
	}
}

const translations = `
	iptables -t nat -A PREROUTING -i lan -d 192.168.1.1 -j DNAT --to-destination 10.1.7.130
	iptables -t nat -A PREROUTING -i docker0 -d 192.168.1.1 -j DNAT --to-destination 172.18.0.2
	iptables -t nat -A PREROUTING -i br-app -d 192.168.1.2 -j DNAT --to-destination 10.1.7.130`

const isolatingIptables = `
	iptables -N DOCKER-USER
	iptables -A DOCKER-USER -j RETURN
	iptables -A FORWARD -j DOCKER-USER
	iptables -A FORWARD -i docker0 -o br-app -j DROP
	iptables -A FORWARD -i br-app -o docker0 -j DROP
	iptables -A FORWARD -i docker0 -o docker0 -j DROP
	iptables -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
	iptables -A FORWARD -i docker0 -j ACCEPT
	iptables -P FORWARD DROP`

const isolatingNftables = `table ip docker-bridges {
	chain forward {
		type filter hook forward priority filter; policy accept;
		meta mark and 0x20000 == 0x20000 accept
		iifname "docker0" oifname "br-app" drop
		iifname "br-app" oifname "docker0" drop
		iifname "docker0" oifname "docker0" drop
		ct state established,related accept
		oifname { "docker0", "br-app" } drop
	}
}`
