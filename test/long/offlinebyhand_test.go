//go:build e2e

package long

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// TestOfflineByHand makes a cluster of images that were carried to the hosts one by one.
func TestOfflineByHand(t *testing.T) {
	made := clusters.Disconnected(t)
	fromDocker(t, made[0], made[1])
}

func fromDocker(t *testing.T, master, worker hosts.Machine) {
	hosts.LoadPlain(t, master)
	for _, ref := range strings.Fields(master.Sh(t, "kube-bootstrap offline list")) {
		carry(t, ref, master, worker)
	}
	before := [2]string{master.World(t), worker.World(t)}
	watched := clusters.Watch(t, []hosts.Machine{master, worker})
	for _, m := range []hosts.Machine{master, worker} {
		m.Sh(t, clusters.LoadHost)
	}
	clusters.Form(t, master, worker)
	watched.None(t)
	clusters.BackToBare(t, before, master, worker)
}

// carry is `docker save IMAGE | ssh HOST docker load`.
func carry(t *testing.T, ref string, from, to hosts.Machine) {
	t.Helper()
	script := fmt.Sprintf("set -o pipefail; docker exec %s docker save %s | docker exec -i %s docker load -q",
		from.Name, ref, to.Name)
	if _, err := (host.Command{Args: []string{"bash", "-c", script}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
