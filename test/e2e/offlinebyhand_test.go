//go:build e2e && long

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// TestOfflineByHand makes a cluster of images that were carried to the hosts one by one.
func TestOfflineByHand(t *testing.T) {
	made := disconnected(t)
	fromDocker(t, made[0], made[1])
}

func fromDocker(t *testing.T, master, worker machine) {
	loadPlain(t, master)
	for _, ref := range strings.Fields(master.sh(t, "kube-bootstrap offline list")) {
		carry(t, ref, master, worker)
	}
	before := [2]string{master.world(t), worker.world(t)}
	watched := watch(t, []machine{master, worker})
	for _, m := range []machine{master, worker} {
		m.sh(t, loadHost)
	}
	form(t, master, worker)
	watched.none(t)
	backToBare(t, before, master, worker)
}

// carry is `docker save IMAGE | ssh HOST docker load`.
func carry(t *testing.T, ref string, from, to machine) {
	t.Helper()
	script := fmt.Sprintf("set -o pipefail; docker exec %s docker save %s | docker exec -i %s docker load -q", from.name, ref, to.name)
	if _, err := (host.Command{Args: []string{"bash", "-c", script}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
