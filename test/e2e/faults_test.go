//go:build e2e && long

package e2e

import (
	"context"
	"testing"
)

// TestFaults causes every fault of the table, one after the other, and prints what
// repaired it and when. After each fault the cluster works again: by the expected
// repair, or else by a reboot or from a snapshot. A fault can be tried alone, as in
// `-run TestFaults/kubelet_removed`.
func TestFaults(t *testing.T) {
	l := clusterUser{cluster: "e2e-fault", subnet: "10.234.0.0/16", dir: t.TempDir()}
	made := l.sh(t, "kube-bootstrap cluster status >/dev/null 2>&1 || echo made") != ""
	t.Cleanup(func() {
		if !made {
			return // it was there before, for somebody who tries one fault after the other
		}
		if out, err := l.try(context.Background(), "kube-bootstrap cluster clean --yes; docker rmi -f "+probeImage); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	l.sh(t, "mkdir app && cp "+built.probe+" app/probe && tar -C app -c . | docker import - "+probeImage)
	l.sh(t, "kube-bootstrap cluster up --progress none && kube-bootstrap cluster load-image "+probeImage)
	for _, name := range []string{"master-1", "worker-1"} {
		l.node(t, name).put(t, built.probe, "/usr/local/bin/probe")
	}
	b := newBed(t, l.node(t, "master-1"), l.node(t, "worker-1"), func(ctx context.Context) error {
		_, err := l.try(ctx, "kube-bootstrap cluster snapshot restore whole --yes --progress none")
		return err
	})
	l.sh(t, "kube-bootstrap cluster snapshot list | grep -q whole || kube-bootstrap cluster snapshot save whole --progress none")
	all := outcomes{}
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) { all = append(all, b.suffer(t, f)) })
	}
	t.Logf("what breaks a cluster, and what repairs it:\n%s", all)
}
