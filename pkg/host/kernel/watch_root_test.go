//go:build root

package kernel_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// reports runs watch in the network namespace of the test, and collects what it
// reports.
func reports(t *testing.T, watch func(context.Context, func(kernel.Change)) error) func() []kernel.Change {
	t.Helper()
	ns, err := netns.Get()
	must.NoError(t, err)
	t.Cleanup(func() { ns.Close() })
	var mu sync.Mutex
	var all []kernel.Change
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(ns); err != nil {
			ended <- err
			return
		}
		ended <- watch(ctx, func(c kernel.Change) { mu.Lock(); all = append(all, c); mu.Unlock() })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func() []kernel.Change { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

// reported repeats a harm until it is reported, because the watch begins some
// time after its call.
func reported(t *testing.T, seen func() []kernel.Change, want kernel.Change, harm string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !slices.Contains(seen(), want); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %q, but %v, after %s", want, seen(), harm)
		}
		hosttest.Shell(t, harm)
	}
}

func TestChangesOfTheNetworkAreReported(t *testing.T) {
	hosttest.InNetns(t)
	seen := reports(t, kernel.WatchNetwork)
	reported(t, seen, kernel.LinkChanged, "ip link set lo down\nip link set lo up")
	reported(t, seen, kernel.RouteChanged, "ip route add 10.9.0.0/24 dev lo\nip route del 10.9.0.0/24 dev lo")
	reported(t, seen, kernel.ForwardingChanged,
		"sysctl -qw net.ipv4.conf.lo.forwarding=1\nsysctl -qw net.ipv4.conf.lo.forwarding=0")
}

func TestRemovedNeighboursOfAVXLANLinkAreReported(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, "ip link add vx type vxlan id 7 dstport 8472 dev lo\nip link set vx up\nip link add plain type "+
		"bridge\nip link set plain up")
	for _, harm := range []string{
		"bridge fdb append 0a:00:00:00:00:01 dev vx dst 192.0.2.1\nbridge fdb del 0a:00:00:00:00:01 dev vx",
		"ip neigh add 10.9.0.0 lladdr 0a:00:00:00:00:01 dev vx nud permanent\nip neigh flush dev vx nud permanent",
	} {
		reported(t, reports(t, kernel.WatchNetwork), kernel.RouteChanged, harm)
	}
	seen := reports(t, kernel.WatchNetwork)
	reported(t, seen, kernel.LinkChanged,
		"ip neigh add 10.9.0.0 lladdr 0a:00:00:00:00:01 dev plain nud permanent\nip neigh flush dev plain nud "+
			"permanent\nip link add other type bridge\nip link del other")
	if slices.Contains(seen(), kernel.RouteChanged) {
		t.Errorf("a neighbour of another link is reported: %v", seen())
	}
}

func TestRemovedRulesAreReported(t *testing.T) {
	hosttest.InNetns(t)
	seen := reports(t, kernel.WatchFirewall)
	reported(t, seen, kernel.RulesRemoved, "nft add table inet x\nnft delete table inet x")
}
