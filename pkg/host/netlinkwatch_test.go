package host_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
)

// reports runs watch in the network namespace of the test, and collects what it
// reports.
func reports(t *testing.T, watch func(context.Context, func(host.Change)) error) func() []host.Change {
	t.Helper()
	ns, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	var mu sync.Mutex
	var all []host.Change
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(ns); err != nil {
			ended <- err
			return
		}
		ended <- watch(ctx, func(c host.Change) { mu.Lock(); all = append(all, c); mu.Unlock() })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func() []host.Change { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

// reported repeats a harm until it is reported, because the watch begins some
// time after its call.
func reported(t *testing.T, seen func() []host.Change, want host.Change, harm string) {
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
	seen := reports(t, host.WatchNetwork)
	reported(t, seen, host.LinkChanged, "ip link set lo down\nip link set lo up")
	reported(t, seen, host.RouteChanged, "ip route add 10.9.0.0/24 dev lo\nip route del 10.9.0.0/24 dev lo")
	reported(t, seen, host.ForwardingChanged, "sysctl -qw net.ipv4.conf.lo.forwarding=1\nsysctl -qw net.ipv4.conf.lo.forwarding=0")
}

func TestRemovedRulesAreReported(t *testing.T) {
	hosttest.InNetns(t)
	seen := reports(t, host.WatchFirewall)
	reported(t, seen, host.RulesRemoved, "nft add table inet x\nnft delete table inet x")
}
