//go:build e2e

package long

import (
	"context"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/faults"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
)

// TestFaults causes every fault of the table, one after the other, and prints what
// repaired it and when. After each fault the cluster works again: by the expected
// repair, or else by a reboot or from a snapshot. A fault can be tried alone, as in
// `-run TestFaults/kubelet_removed`.
func TestFaults(t *testing.T) {
	l := localcluster.User{Cluster: "e2e-fault", Subnet: "10.234.0.0/16", Dir: t.TempDir()}
	made := l.Sh(t, "kube-bootstrap cluster status >/dev/null 2>&1 || echo made") != ""
	t.Cleanup(func() {
		if !made {
			return // it was there before, for somebody who tries one fault after the other
		}
		if out, err := l.Try(context.Background(), "kube-bootstrap cluster clean --yes; docker rmi -f "+
			hosts.ProbeImage); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	l.Sh(t, "mkdir app && cp "+hosts.Built.Probe+" app/probe && tar -C app -c . | docker import - "+hosts.ProbeImage)
	l.Sh(t, "kube-bootstrap cluster up --progress none && kube-bootstrap cluster load-image "+hosts.ProbeImage)
	for _, name := range []string{"master-1", "worker-1"} {
		l.Node(t, name).Put(t, hosts.Built.Probe, "/usr/local/bin/probe")
	}
	b := faults.NewBed(t, l.Node(t, "master-1"), l.Node(t, "worker-1"), func(ctx context.Context) error {
		_, err := l.Try(ctx, "kube-bootstrap cluster snapshot restore whole --yes --progress none")
		return err
	})
	l.Sh(t, "kube-bootstrap cluster snapshot list | grep -q whole || "+
		"kube-bootstrap cluster snapshot save whole --progress none")
	all := faults.Outcomes{}
	for _, f := range faults.All() {
		t.Run(f.Name, func(t *testing.T) { all = append(all, b.Suffer(t, f)) })
	}
	t.Logf("what breaks a cluster, and what repairs it:\n%s", all)
}
