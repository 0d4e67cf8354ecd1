//go:build e2e

package bench

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// usage is what a host uses while nothing happens.
type usage struct {
	// bytes, resident; a page that several processes share counts once in pss, and for each of them in rss
	pss, rss int64
	cpu      time.Duration // in a minute
}

// readUsage waits until a host has settled, and then measures a minute. The group of
// the host counts the time of processes that ended, too.
const readUsage = `cpu() { cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null ||
	awk '/^usage_usec/ {print $2 * 1000}' /sys/fs/cgroup/cpu.stat; }
sleep %d; before=$(cpu); sleep 60; after=$(cpu)
cat /proc/[0-9]*/smaps_rollup 2>/dev/null |
	awk '/^Pss:/ {pss += $2} /^Rss:/ {rss += $2} END {printf "%%.0f %%.0f ", pss * 1024, rss * 1024}'
echo $((after - before))`

func measure(t *testing.T, m hosts.Machine, settle time.Duration) (u usage) {
	t.Helper()
	out := m.Sh(t, fmt.Sprintf(readUsage, int(settle.Seconds())))
	var nano int64
	_, err := fmt.Sscan(out, &u.pss, &u.rss, &nano)
	must.NoError(t, err)
	u.cpu = time.Duration(nano)
	return u
}

// idle are the usages of the hosts of a bench: without a cluster, with one of
// kube-bootstrap and with one of kubeadm.
type idle struct{ bare, ours, peers map[string]usage }

func usages(t *testing.T, settle time.Duration, master, worker hosts.Machine) map[string]usage {
	t.Helper()
	onMaster, onWorker := measure(t, master, settle), measure(t, worker, 0)
	// The scheduler may place CoreDNS on either host.
	both := usage{onMaster.pss + onWorker.pss, onMaster.rss + onWorker.rss, onMaster.cpu + onWorker.cpu}
	return map[string]usage{"control plane": onMaster, "worker": onWorker, "both": both}
}

// table shows what the clusters use in addition to the hosts without one.
func (i idle) table() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "idle host\tPSS MB\tkubeadm\tratio\tRSS MB\tkubeadm\tratio\tCPU s/min\tkubeadm\tratio\t")
	for _, host := range []string{"control plane", "worker", "both"} {
		bare, ours, peers := i.bare[host], i.ours[host], i.peers[host]
		fmt.Fprintf(table, "%s\t", host)
		for _, of := range []func(usage) int64{
			func(u usage) int64 { return u.pss }, func(u usage) int64 { return u.rss },
		} {
			memory, peer := of(ours)-of(bare), of(peers)-of(bare)
			fmt.Fprintf(table, "%d\t%d\t%.2f\t", memory>>20, peer>>20, float64(memory)/float64(peer))
		}
		cpu, peer := (ours.cpu - bare.cpu).Seconds(), (peers.cpu - bare.cpu).Seconds()
		fmt.Fprintf(table, "%.2f\t%.2f\t%.2f\t\n", cpu, peer, cpu/peer)
	}
	_ = table.Flush()
	return b.String()
}
