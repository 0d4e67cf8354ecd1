//go:build e2e

package long

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestRestarts restarts, under a cluster of three, the engine that runs it, and
// then all its nodes in any order, ten times. It comes back without a command.
// The engine is one of its own, in a network namespace.
func TestRestarts(t *testing.T) {
	r := remoteEngine(t)
	for name, value := range map[string]string{
		"DOCKER_HOST": "tcp://" + remoteAddr + ":2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": r.dir,
	} {
		t.Setenv(name, value)
	}
	const name = "e2e-re"
	defer r.run(t, nil, "cluster", "clean", "--yes", "--name", name)
	r.run(t, nil, "cluster", "up", "--name", name, "--workers", "2", "--bundle", hosts.Built.Bundle, "--snapshot=false")
	all := []hosts.Machine{{Name: name + "-master-1"}, {Name: name + "-worker-1"}, {Name: name + "-worker-2"}}
	began := time.Now().UTC()
	wait.Until(t, time.Minute, "nodes and pods", func() error { return clusters.AllReady(t, all[0], began, 3) })
	before := clusters.Subnets(t, all...)

	t.Run("the engine", func(t *testing.T) {
		began := time.Now()
		r.sh(t, `cd "$1"; unset DOCKER_TLS_VERIFY
pid=$(cat dockerd.pid) && kill $pid && tail --pid=$pid -f /dev/null
`+startEngine+"\n"+awaitEngine)
		back(t, all, began, before)
	})
	for i := range 10 {
		t.Run(fmt.Sprintf("all nodes, %d", i+1), func(t *testing.T) {
			var names []string
			for _, m := range all {
				names = append(names, m.Name)
			}
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			hosts.Docker(t, append([]string{"restart", "-t", fmt.Sprint(rand.IntN(20))}, names...)...)
			t.Log(strings.Join(names, ", "))
			back(t, all, time.Now(), before)
		})
	}
}

// back expects all machines on the subnets of before, and every node and pod
// Ready.
func back(t *testing.T, all []hosts.Machine, since time.Time, before map[string]string) {
	t.Helper()
	for _, m := range all {
		wait.Until(t, time.Minute, "docker0 of "+m.Name,
			func() error { return clusters.HasBridge(t, m, before[m.Name]) })
	}
	wait.Until(t, 2*time.Minute, "nodes and pods", func() error {
		return clusters.AllReady(t, all[0], since.UTC(),
			len(all))
	})
	t.Logf("all back after %s", time.Since(since).Round(time.Second/10))
}
