//go:build e2e && bench

package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// TestBenchCluster makes clusters of growing size, takes each down and brings
// it back. It asserts no time.
func TestBenchCluster(t *testing.T) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "workers\tfirst up s\tnames s\tdown s\tup again s\tof the first\tnames s\tsave s\trestore s\tload\t")
	for _, workers := range []int{1, 2, 4} {
		c := localCluster{name: fmt.Sprintf("bench-%d", workers), flags: []string{
			"--workers", fmt.Sprint(workers), "--dind-subnet", fmt.Sprintf("10.%d.0.0/16", 195+workers), "--bundle", built.bundle,
		}}
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() { c.cleaned(t) })
			first, firstNames := c.useful(t)
			down := c.timed(t, "down")
			again, againNames := c.useful(t)
			save := c.timed(t, "snapshot", "save", "bench")
			restore := c.timed(t, "snapshot", "restore", "--yes", "bench")
			load, _ := os.ReadFile("/proc/loadavg") // without it no time says anything
			fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%.1f\t%.1f\t%.1f\t%s\t\n", workers, first, firstNames,
				down, again, again/first, againNames, save, restore, strings.Fields(string(load))[0])
		})
	}
	fmt.Printf("\none run each, on %d CPUs; names: until a worker's pods resolve them, from the start of up\n", runtime.NumCPU())
	_ = table.Flush()
}

// lookup asks the cluster's DNS by its Service, as a pod of this host does.
const lookup = `echo nameserver 10.96.0.10 >/tmp/resolv.conf
timeout 120 sh -c 'until timeout 0.2 unshare -m sh -c "mount --bind /tmp/resolv.conf /etc/resolv.conf && getent hosts kubernetes.default.svc.cluster.local"; do :; done'`

// useful brings the cluster up. It returns how long that took, and how long it
// was until a worker's pods resolved names: kube-proxy there comes last.
func (c localCluster) useful(t *testing.T) (up, names float64) {
	t.Helper()
	began := time.Now()
	c.run(t, "up", c.flags...)
	up = time.Since(began).Seconds()
	c.worker().sh(t, lookup)
	return up, time.Since(began).Seconds()
}

func (c localCluster) timed(t *testing.T, verb string, args ...string) float64 {
	t.Helper()
	began := time.Now()
	c.run(t, verb, args...)
	return time.Since(began).Seconds()
}
