//go:build e2e

package long

import (
	"context"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestThreeAndTwo makes a cluster of three masters and two workers in one go,
// sends packets from everywhere to everywhere, and takes the power from its
// first master: every other node goes on by the API servers that are left.
func TestThreeAndTwo(t *testing.T) {
	l := localcluster.User{Cluster: "e2e-t", Subnet: "10.216.0.0/16", Dir: t.TempDir()}
	t.Cleanup(func() {
		if out, err := l.Try(context.Background(), "kube-bootstrap cluster clean --yes; docker rmi -f "+
			hosts.ProbeImage); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	l.Sh(t, "mkdir app && cp "+hosts.Built.Probe+" app/probe && tar -C app -c . | docker import - "+hosts.ProbeImage)
	l.Sh(t, "kube-bootstrap cluster up --masters 3 --workers 2 --progress none")
	var all []hosts.Machine
	for _, name := range []string{"master-1", "master-2", "master-3", "worker-1", "worker-2"} {
		all = append(all, l.Node(t, name))
	}
	ready := func() {
		t.Helper()
		since := time.Now().UTC()
		wait.Until(t, 2*time.Minute, "nodes and pods", func() error {
			return clusters.AllReady(t, all[1], since,
				len(all))
		})
	}
	ready()
	clusters.Voters(t, all[0], 3)
	l.Sh(t, "kube-bootstrap cluster load-image "+hosts.ProbeImage)
	for _, m := range all {
		m.Put(t, hosts.Built.Probe, "/usr/local/bin/probe")
	}
	t.Run("every pod and container reaches every other", func(t *testing.T) {
		ends := traffic.StartProbes(t, all[0], all...)
		traffic.Matrix(t, all[0], ends)
		traffic.Services(t, all[0], ends)
	})
	t.Run("one of three masters dies", func(t *testing.T) { clusters.Survive(t, all[0], all[1:]...) })
	ready()
}
