//go:build e2e && long

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
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

// loadPlain is `zstd -dc BUNDLE | docker load` on a host.
func loadPlain(t *testing.T, m machine) {
	t.Helper()
	file, err := os.Open(built.bundle)
	must.NoError(t, err)
	defer file.Close()
	plain, err := zstd.NewReader(file)
	must.NoError(t, err)
	defer plain.Close()
	if _, err := (host.Command{Args: []string{"docker", "exec", "-i", m.name, "docker", "load", "-q"}, Stdin: plain}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// carry is `docker save IMAGE | ssh HOST docker load`.
func carry(t *testing.T, ref string, from, to machine) {
	t.Helper()
	script := fmt.Sprintf("set -o pipefail; docker exec %s docker save %s | docker exec -i %s docker load -q", from.name, ref, to.name)
	if _, err := (host.Command{Args: []string{"bash", "-c", script}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
