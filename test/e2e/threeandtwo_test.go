//go:build e2e && long

package e2e

import (
	"context"
	"testing"
	"time"
)

// TestThreeAndTwo makes a cluster of three masters and two workers in one go,
// sends packets from everywhere to everywhere, and takes the power from its
// first master: every other node goes on by the API servers that are left.
func TestThreeAndTwo(t *testing.T) {
	l := clusterUser{cluster: "e2e-t", subnet: "10.216.0.0/16", dir: t.TempDir()}
	t.Cleanup(func() {
		if out, err := l.try(context.Background(), "kube-bootstrap cluster clean --yes; docker rmi -f "+probeImage); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	l.sh(t, "mkdir app && cp "+built.probe+" app/probe && tar -C app -c . | docker import - "+probeImage)
	l.sh(t, "kube-bootstrap cluster up --masters 3 --workers 2 --progress none")
	var all []machine
	for _, name := range []string{"master-1", "master-2", "master-3", "worker-1", "worker-2"} {
		all = append(all, l.node(t, name))
	}
	ready := func() {
		t.Helper()
		since := time.Now().UTC()
		eventually(t, 2*time.Minute, "nodes and pods", func() error { return allReady(t, all[1], since, len(all)) })
	}
	ready()
	voters(t, all[0], 3)
	l.sh(t, "kube-bootstrap cluster load-image "+probeImage)
	for _, m := range all {
		m.put(t, built.probe, "/usr/local/bin/probe")
	}
	t.Run("every pod and container reaches every other", func(t *testing.T) {
		ends := startProbes(t, all[0], all...)
		matrix(t, all[0], ends)
		services(t, all[0], ends)
	})
	t.Run("one of three masters dies", func(t *testing.T) { survive(t, all[0], all[1:]...) })
	ready()
}
