//go:build e2e && long

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestRestarts restarts, under a cluster of three, the engine that runs it, and
// then all its nodes in any order, ten times. It comes back without a command.
// The engine is one of its own, in a network namespace.
func TestRestarts(t *testing.T) {
	r := remoteEngine(t)
	for name, value := range map[string]string{"DOCKER_HOST": "tcp://" + remoteAddr + ":2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": r.dir} {
		t.Setenv(name, value)
	}
	const name = "e2e-re"
	defer r.run(t, nil, "cluster", "clean", "--yes", "--name", name)
	r.run(t, nil, "cluster", "up", "--name", name, "--workers", "2", "--bundle", built.bundle, "--snapshot=false")
	all := []machine{{name: name + "-master-1"}, {name: name + "-worker-1"}, {name: name + "-worker-2"}}
	began := time.Now().UTC()
	eventually(t, time.Minute, "nodes and pods", func() error { return allReady(t, all[0], began, 3) })
	before := subnets(t, all...)

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
				names = append(names, m.name)
			}
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			docker(t, append([]string{"restart", "-t", fmt.Sprint(rand.IntN(20))}, names...)...)
			t.Log(strings.Join(names, ", "))
			back(t, all, time.Now(), before)
		})
	}
}

// back expects all machines on the subnets of before, and every node and pod
// Ready.
func back(t *testing.T, all []machine, since time.Time, before map[string]string) {
	t.Helper()
	for _, m := range all {
		eventually(t, time.Minute, "docker0 of "+m.name, func() error { return hasBridge(t, m, before[m.name]) })
	}
	eventually(t, 2*time.Minute, "nodes and pods", func() error { return allReady(t, all[0], since.UTC(), len(all)) })
	t.Logf("all back after %s", time.Since(since).Round(time.Second/10))
}
