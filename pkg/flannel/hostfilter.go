package flannel

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	filterTable = "inet kube-bootstrap-hosts"
	hostSet     = "hosts"
	peerSet     = "control-planes"
)

// OverlayPorts are the UDP ports by which the backends of flannel send packets between hosts.
// The packets of the others have none.
var OverlayPorts = map[string]int{"vxlan": 8472, "wireguard": 51820, "udp": 8285}

// HostFilter drops packets to ports between the hosts of a cluster that no host of
// the cluster has sent. Hosts are the addresses of the leases in etcd, because
// a host has a lease before it sends the first packet to such a port:
//
//	UDP 8472 (vxlan)  hosts and Trusted
//	KubeletPort       hosts, Trusted, control planes, pods and containers
//	PeerPort          control planes and Trusted
//	ClientPort        not hosts that are no control planes, and no pods and containers
//
// Packets of pods and containers to these ports of other hosts are dropped before flanneld
// masquerades them, see forward.
//
// A control plane that joins must reach ClientPort before it is one. It has no lease then.
// It uses nftables, which filters packets in addition to the rules of
// iptables-nft and iptables-legacy. Without nftables it does nothing.
type HostFilter struct {
	Etcd        EtcdAccess
	PublicIP    netip.Addr     // of this host
	Backend     string         // as in Network
	Network     netip.Prefix   // of pods and containers
	Trusted     []netip.Prefix // further networks; 0.0.0.0/0 removes the filter
	KubeletPort int
	PeerPort    int // etcd's port for members; 0 on a worker
	ClientPort  int // etcd's port for clients; 0 on a worker
	// ControlPlanes reads all addresses of control planes, also joining ones, from etcd.
	ControlPlanes func(ctx context.Context, client *clientv3.Client) ([]string, error)
}

// filterState is the table of nftables and its sets that HostFilter requires.
type filterState struct {
	table netfilter.NftTable
	sets  map[string][]string
}

// Step is the step that establishes the filter, and removes it with Undo.
func (g HostFilter) Step() step.Step {
	return step.Step{
		ID: "host-filter", Name: "filter the ports between hosts",
		Check: func(ctx context.Context) (step.Diff, error) {
			_, diff, err := g.compare(ctx)
			if errors.Is(err, fs.ErrNotExist) {
				return diff, nil // this host has no certificate for etcd yet
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error { return step.Until(ctx, g.pass, nil) },
		Waits: true, // see pass
		Undo:  func(ctx context.Context) error { return netfilter.DeleteNftTable(ctx, filterTable) },
	}
}

// pass sets the table if it differs, and returns the difference as an error,
// because a host may have joined meanwhile.
func (g HostFilter) pass(ctx context.Context) error {
	want, diff, err := g.compare(ctx)
	if err != nil || len(diff) == 0 {
		return err
	}
	if want.sets == nil {
		err = netfilter.DeleteNftTable(ctx, filterTable)
	} else {
		err = netfilter.SetNftTable(ctx, want.table)
	}
	if err != nil {
		return step.Final(err)
	}
	return errors.New(diff.String())
}

// Refresh writes the current addresses into an existing table. It never creates
// or removes the table, so it needs no lock: a user's run on this host must not
// delay hosts that join. turndown may remove the table while Refresh runs.
func (g HostFilter) Refresh(ctx context.Context) error {
	if exists, err := filterExists(ctx); err != nil || !exists {
		return err
	}
	want, diff, err := g.compare(ctx)
	if err != nil || len(diff) == 0 || want.sets == nil {
		return err
	}
	return netfilter.ReplaceNftTable(ctx, want.table)
}

// compare returns the wanted state, without sets if it is no filter, and the difference.
func (g HostFilter) compare(ctx context.Context) (want filterState, diff step.Diff, err error) {
	tables, supported, err := netfilter.FindNftTables(ctx)
	if err != nil || !supported {
		return want, nil, err
	}
	exists := slices.Contains(tables, filterTable)
	if slices.ContainsFunc(g.Trusted, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
		if exists {
			diff = step.Diff{"remove the filter of hosts"}
		}
		return want, diff, nil
	}
	if want, err = g.wanted(ctx); err != nil || !exists {
		return want, step.Diff{"add the filter of hosts"}, err
	}
	diff, err = want.diff(ctx)
	return want, diff, err
}

func (g HostFilter) wanted(ctx context.Context) (filterState, error) {
	client, err := g.Etcd.client(ctx)
	if err != nil {
		return filterState{}, err
	}
	defer client.Close()
	all, err := leases(ctx, client)
	if err != nil {
		return filterState{}, err
	}
	planes, err := g.ControlPlanes(ctx, client)
	if err != nil {
		return filterState{}, step.NoAnswer(err)
	}
	hosts := []string{g.PublicIP.String()}
	for _, l := range all {
		hosts = append(hosts, l.host.String())
	}
	return g.filter(hosts, planes), nil
}

func (g HostFilter) filter(hosts, planes []string) filterState {
	slices.Sort(hosts)
	slices.Sort(planes)
	hosts, planes = slices.Compact(hosts), slices.Compact(planes)
	body := addressSet(hostSet, hosts) + addressSet(peerSet, planes)
	rules := g.rules()
	comment := fmt.Sprintf("kube-bootstrap: hosts only %.6x", sha256.Sum256([]byte(fmt.Sprint(rules))))
	for _, c := range rules {
		body += "\tchain " + c.name + " {\n"
		if c.hook != "" {
			body += "\t\t" + c.hook + "\n"
		}
		for _, r := range c.rules {
			body += "\t\t" + r + " comment \"" + comment + "\"\n"
		}
		body += "\t}\n"
	}
	return filterState{
		table: netfilter.NftTable{Name: filterTable, Body: body, Comment: comment},
		sets:  map[string][]string{hostSet: hosts, peerSet: planes},
	}
}

func addressSet(name string, addresses []string) string {
	if len(addresses) == 0 {
		return "\tset " + name + " { type ipv4_addr; }\n"
	}
	return "\tset " + name + " { type ipv4_addr; elements = { " + strings.Join(addresses, ", ") + " }; }\n"
}

type filterChain struct {
	name, hook string
	rules      []string
}

// rules returns the chains. A chain precedes the chains that jump to it, as nft requires.
func (g HostFilter) rules() []filterChain {
	trusted := filterChain{name: "trusted"}
	for _, p := range g.Trusted {
		trusted.rules = append(trusted.rules, "ip saddr "+p.String()+" accept")
	}
	trusted.rules = append(trusted.rules, "drop")
	input := filterChain{
		name: "input", hook: "type filter hook input priority -10; policy accept;",
		rules: []string{"iif \"lo\" accept"},
	}
	if g.Backend == "vxlan" {
		input.rules = append(input.rules, fmt.Sprintf("udp dport %d goto overlay", OverlayPorts["vxlan"]))
	}
	input.rules = append(input.rules, fmt.Sprintf("tcp dport %d goto kubelet", g.KubeletPort))
	if g.PeerPort != 0 {
		input.rules = append(input.rules, fmt.Sprintf("tcp dport %d goto etcd", g.PeerPort),
			fmt.Sprintf("tcp dport %d goto etcd-clients", g.ClientPort))
	}
	fromHosts, fromPeers := "ip saddr @"+hostSet+" accept", "ip saddr @"+peerSet+" accept"
	chains := []filterChain{
		trusted,
		{name: "overlay", rules: []string{fromHosts, "goto trusted"}},
		{name: "kubelet", rules: []string{
			fromHosts, fromPeers, "ip saddr " + g.Network.String() + " accept", "goto trusted",
		}},
		{name: "etcd", rules: []string{fromPeers, "goto trusted"}},
		{name: "etcd-clients", rules: []string{
			fromPeers, "ip saddr @" + hostSet + " drop", "ip saddr " + g.Network.String() + " drop",
		}},
		input,
	}
	if forward := g.forward(); len(forward) > 0 {
		chains = append(chains, filterChain{
			name: "forward", hook: "type filter hook forward priority -10; policy accept;", rules: forward,
		})
	}
	return chains
}

// forward returns the rules for packets of pods and containers to other hosts. flanneld and
// Docker masquerade them: the other hosts would take them for packets of this host.
// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/trafficmngr/iptables/iptables.go#L156-L161
func (g HostFilter) forward() (rules []string) {
	if g.Backend == "vxlan" {
		rules = append(rules, fmt.Sprintf("ip saddr != @%s ip daddr @%s udp dport %d goto trusted", hostSet, hostSet,
			OverlayPorts["vxlan"]))
	}
	if g.PeerPort != 0 {
		pods := "ip saddr " + g.Network.String() + " ip daddr @" + peerSet
		rules = append(rules, fmt.Sprintf("%s tcp dport %d goto trusted", pods, g.PeerPort),
			fmt.Sprintf("%s tcp dport %d drop", pods, g.ClientPort))
	}
	return rules
}

func (w filterState) diff(ctx context.Context) (diff step.Diff, err error) {
	sets, whole, err := netfilter.ReadNftTable(ctx, w.table)
	if err != nil || !whole {
		return step.Diff{"replace the filter of hosts"}, err
	}
	for name, want := range w.sets {
		now := sets[name]
		slices.Sort(now)
		if !slices.Equal(now, want) {
			diff = append(diff, setDiff("accept "+name+" from ", want, now)...)
			diff = append(diff, setDiff("no longer accept "+name+" from ", now, want)...)
		}
	}
	slices.Sort(diff)
	return diff, nil
}

// setDiff lists the addresses of a that b lacks.
func setDiff(change string, a, b []string) (diff step.Diff) {
	for _, address := range a {
		if _, found := slices.BinarySearch(b, address); !found {
			diff = append(diff, change+address)
		}
	}
	return diff
}

func filterExists(ctx context.Context) (bool, error) {
	tables, err := netfilter.NftTables(ctx)
	return slices.Contains(tables, filterTable), err
}
