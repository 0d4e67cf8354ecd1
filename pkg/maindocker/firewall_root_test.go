//go:build root

package maindocker

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func saved(t *testing.T, command ...string) string {
	t.Helper()
	out, err := host.Run(context.Background(), command...)
	must.NoError(t, err)
	return out + "\n"
}

// TestFirewall changes the link, the subnet and Docker's firewall one after
// another. Each time exactly the wanted rules must exist, before the user's
// rules.
func TestFirewall(t *testing.T) {
	hosttest.InNetns(t)
	saved(t, "iptables", "-N", "DOCKER-USER")
	saved(t, "iptables", "-A", "DOCKER-USER", "-s", "192.0.2.0/24", "-m", "comment", "--comment", "by the owner", "-j", "DROP")
	saved(t, "iptables", "-t", "raw", "-A", "PREROUTING", "-d", "10.1.7.2", "!", "-i", "docker0", "-j", "DROP")
	before := saved(t, "iptables", "-S") + saved(t, "iptables", "-t", "raw", "-S")
	other := lease
	other.Subnet, _ = other.Subnet.Addr().Prefix(25)
	nftables := settings{"firewall-backend": "nftables", acceptMark: ourMark}
	for _, f := range []firewall{
		firewallFor("flannel.1", lease, hosts, settings{}), firewallFor("", other, hosts, settings{}), firewallFor("", lease, hosts, settings{}),
		firewallFor("flannel0", lease, hosts, settings{}), firewallFor("", lease, hosts, nftables), firewallFor("flannel.ipip", lease, hosts, nftables),
		firewallFor("flannel-wg", lease, hosts, settings{}),
	} {
		converges(t, f)
	}
	for range 2 {
		must.NoError(t, removeFirewall(context.Background()))
	}
	if after := saved(t, "iptables", "-S") + saved(t, "iptables", "-t", "raw", "-S"); after != before {
		t.Errorf("got\n%s, want\n%s", after, before)
	}
	if left := saved(t, "nft", "list", "tables"); strings.Contains(left, nftTable) {
		t.Errorf("left: %s", left)
	}
}

// TestForwardPolicy: Docker's own DROP returns after a flush, and a chain that accepted stays.
func TestForwardPolicy(t *testing.T) {
	hosttest.InNetns(t)
	for _, before := range []string{"ACCEPT", drop} {
		files := host.Files{Root: t.TempDir()}
		saved(t, "iptables", "-P", "FORWARD", before)
		must.NoError(t, notePolicy(files))
		saved(t, "nft", "flush", "ruleset")
		saved(t, "iptables", "-P", "FORWARD", "ACCEPT")
		must.NoError(t, notePolicy(files)) // as the next run does
		for range 2 {
			must.NoError(t, keepPolicy(files))
		}
		if now, err := forwardPolicy(); err != nil || now != before {
			t.Errorf("%s before, now %s, %v", before, now, err)
		}
	}
}

func converges(t *testing.T, f firewall) {
	t.Helper()
	ctx := context.Background()
	if diff, err := f.diff(ctx); err != nil || len(diff) == 0 {
		t.Errorf("before: %v, %v", diff, err)
	}
	for range 2 {
		must.NoError(t, f.apply(ctx))
		if diff, err := f.diff(ctx); err != nil || len(diff) != 0 {
			t.Errorf("after: %v, %v", diff, err)
		}
	}
	for _, p := range []netfilter.Place{userChain, rawChain} {
		lines := strings.Split(saved(t, "iptables", "-t", p.Table, "-S", p.Chain), "\n")
		others := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, "-j DROP") })
		first, last := count(lines[:others]), count(lines[others:])
		wantFirst, wantLast := 0, 0
		for _, r := range f.rulesOf(p) {
			if r.Last {
				wantLast++
			} else {
				wantFirst++
			}
		}
		if first != wantFirst || last != wantLast {
			t.Errorf("want %d rules of kube-bootstrap before the rule of the user or of Docker and %d after it:\n%s", wantFirst, wantLast, strings.Join(lines, "\n"))
		}
	}
	if has := strings.Contains(saved(t, "nft", "list", "tables"), nftTable); has != (f.table != nil) {
		t.Errorf("there is a table of nftables: %t", has)
	}
}

func count(lines []string) int { return strings.Count(strings.Join(lines, "\n"), commentMark) }

// An existing docker0 is changed, not replaced: pods may be attached to it.
func TestSetLink(t *testing.T) {
	hosttest.InNetns(t)
	must.NoError(t, setLink(lease))
	if _, ok, err := links.Find(linkName); ok || err != nil {
		t.Fatalf("a missing docker0 is Docker's to make: %v, %v", ok, err)
	}
	saved(t, "ip", "link", "add", linkName, "type", "bridge")
	saved(t, "ip", "addr", "add", "172.17.0.1/16", "dev", linkName)
	saved(t, "ip", "link", "add", "pod0", "type", "veth", "peer", "name", "pod1")
	saved(t, "ip", "link", "set", "pod0", "master", linkName)
	must.NoError(t, setLink(lease))
	link, _, err := links.Find(linkName)
	if diff := linkDiff(link, lease); err != nil || len(diff) > 0 {
		t.Errorf("got %v, %v", diff, err)
	}
	if ports := saved(t, "ip", "link", "show", "master", linkName); !strings.Contains(ports, "pod0") {
		t.Errorf("the pod has lost its bridge: %s", ports)
	}
}
