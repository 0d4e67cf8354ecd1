//go:build e2e

package long

import (
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// tearWAL stops etcd as a power failure does, and damages an entry in the middle of its write-ahead log.
const tearWAL = `engine="docker -H unix:///run/docker-bootstrap.sock"
$engine kill etcd >/dev/null
file=$(ls /var/lib/kube-bootstrap/etcd/member/wal/*.wal | tail -n 1)
head -c 64 /dev/urandom | dd of="$file" bs=1 seek=20000 conv=notrunc status=none
$engine start etcd >/dev/null`

// TestTornWAL recovers a single control plane from the database of its etcd, because the log cannot be read.
func TestTornWAL(t *testing.T) {
	m := hosts.New(t, "docker-28.5", "10.193.64.0/24", "e2e-torn-a")[0]
	m.Sh(t, "kube-bootstrap master --no-dedicated --bundle "+hosts.Bundle)
	m.Kubectl(t, "create configmap stored")
	time.Sleep(2 * time.Second) // etcd commits its database several times a second
	m.Sh(t, tearWAL)
	hosts.Soon(t, time.Minute, "status to name the command", m,
		"kube-bootstrap status | grep -F '[etcd-data]' | grep -F '"+recoverCommand+"'")
	m.Sh(t, recoverCommand+" --yes")
	m.Kubectl(t, "get configmap stored")
	clusters.Voters(t, m, 1)
	if broken := clusters.Broken(t, m); broken != "" {
		t.Errorf("after the recovery: %s", broken)
	}
}
