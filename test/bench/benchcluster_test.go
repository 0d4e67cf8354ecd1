//go:build e2e

package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// localCluster is a cluster of containers, with what is measured of it.
type localCluster struct{ localcluster.Cluster }

// TestBenchCluster creates clusters of growing size, stops each and starts it again, and creates
// each once more with the prepared disk. It asserts no time.
func TestBenchCluster(t *testing.T) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "workers\tfirst up s\tnames s\tdown s\tup again s\tof the first\tnames s\tsave s\trestore "+
		"s\tnext up s\tadd a node s\tload\t")
	for _, workers := range []int{1, 2, 4} {
		c := localCluster{localcluster.Cluster{Name: fmt.Sprintf("bench-%d", workers), Flags: []string{
			"--workers", fmt.Sprint(workers), "--dind-subnet", fmt.Sprintf("10.%d.0.0/16", 195+workers), "--bundle",
			hosts.Built.Bundle,
		}}}
		t.Run(c.Name, func(t *testing.T) {
			t.Cleanup(func() { c.Cleaned(t) })
			noPreparedDisk(t)
			first, firstNames := c.useful(t)
			down := c.timed(t, "down")
			again, againNames := c.useful(t)
			save := c.timed(t, "snapshot", "save", "bench")
			restore := c.timed(t, "snapshot", "restore", "--yes", "bench")
			c.Run(t, "clean", "--yes", "--keep-images")
			next := c.timed(t, "up", c.Flags...)
			add := took(t, hosts.Built.Binary, "node", "add", "--cluster", c.Name)
			load, _ := os.ReadFile("/proc/loadavg") // without it no time says anything
			fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n", workers, first,
				firstNames,
				down, again, again/first, againNames, save, restore, next, add, strings.Fields(string(load))[0])
		})
	}
	fmt.Printf("\none run each, on %d CPUs; names: until a worker's pods resolve them, from the start of up\n",
		runtime.NumCPU())
	_ = table.Flush()
}

// lookup asks the cluster's DNS by its Service, as a pod of this host does.
const lookup = `echo nameserver 10.96.0.10 >/tmp/resolv.conf
timeout 120 sh -c 'until timeout 0.2 unshare -m sh -c "
	mount --bind /tmp/resolv.conf /etc/resolv.conf && getent hosts kubernetes.default.svc.cluster.local"; do :; done'`

// useful brings the cluster up. It returns how long that took, and how long it
// was until a worker's pods resolved names: kube-proxy there comes last.
func (c localCluster) useful(t *testing.T) (up, names float64) {
	t.Helper()
	began := time.Now()
	c.Run(t, "up", c.Flags...)
	up = time.Since(began).Seconds()
	c.Worker().Sh(t, lookup)
	return up, time.Since(began).Seconds()
}

// noPreparedDisk removes the prepared disk that another cluster may have left.
func noPreparedDisk(t *testing.T) {
	t.Helper()
	took(t, "sh", "-c", "docker volume ls -q --filter label=kube-bootstrap.dev/owner=prepared-disk | "+
		"xargs -r docker volume rm")
}

func (c localCluster) timed(t *testing.T, verb string, args ...string) float64 {
	t.Helper()
	return took(t, c.Command(verb, args...)...)
}

// took runs a command and returns how many seconds it took.
func took(t *testing.T, args ...string) float64 {
	t.Helper()
	began := time.Now()
	_, err := host.Command{Args: args}.Run(t.Context())
	must.NoError(t, err)
	return time.Since(began).Seconds()
}
