//go:build e2e

package long

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// fetchedBundle is where a host that joins keeps what it has fetched.
const fetchedBundle = "/var/lib/kube-bootstrap/bundle.tar.zst"

// TestOffer: hosts join without a bundle, over a network that fails.
func TestOffer(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.132.1.0/24", "e2e-oa", "e2e-ob", "e2e-oc")
	first, second, worker := made[0], made[1], made[2]
	first.Sh(t, "kube-bootstrap master --bundle "+hosts.Bundle)
	second.Sh(t, clusters.NewToken(t, first, "--control-plane").ControlPlaneLine())
	joinWithoutABundle(t, first, second, worker)
}

// joinWithoutABundle has a worker join by the command that `token create` prints on second, which
// has fetched its own images from first. The transfer is cut, the run killed, and the image that
// somebody removes comes from the same source.
func joinWithoutABundle(t *testing.T, first, second, worker hosts.Machine) {
	before := worker.World(t)
	t.Run("who may read the bundle", func(t *testing.T) { refusedReaders(t, first, worker) })
	t.Run("no control plane has the images", func(t *testing.T) { refusedOffer(t, first, second, worker, before) })
	line := clusters.JoinCommand(t, second)
	if strings.Contains(line, "bundle") {
		t.Fatalf("the command names a bundle: %s", line)
	}
	const quota = "nft add table ip cut && nft 'add chain ip cut input { type filter hook input priority 0; }' && " +
		"nft add rule ip cut input tcp sport 6444 quota over %d mbytes drop"
	worker.Sh(t, fmt.Sprintf(quota, 20))
	worker.Sh(t, "{ "+line+"; } >/tmp/join.log 2>&1 & echo $! >/tmp/join.pid")
	size := "stat -c %s " + fetchedBundle + ".*.partial"
	hosts.Soon(t, time.Minute, "a part of the bundle", worker, fmt.Sprintf("test $(%s) -gt %d", size, 15<<20))
	worker.Sh(t, "pkill -9 -x kube-bootstrap; nft delete table ip cut")
	had := worker.Sh(t, size)
	worker.Sh(t, line)
	t.Logf("the second run had %s bytes already", had)
	if left := worker.Sh(t, "ls "+fetchedBundle+"*"); left != fetchedBundle {
		t.Errorf("files of the transfer: %s", left)
	}
	t.Run("a removed image comes back", func(t *testing.T) {
		pause := worker.Sh(t, "ctr -n k8s.io images ls -q | grep pause:")
		for _, file := range []string{"true", "rm " + fetchedBundle} { // from the file, and from a control plane
			worker.Sh(t, file+" && ctr -n k8s.io images rm "+pause)
			hosts.Soon(t, time.Minute, "the image", worker, "ctr -n k8s.io images ls -q | grep -q "+pause)
		}
	})
}

// refusedReaders asks for the bundle without a credential and with a wrong one.
func refusedReaders(t *testing.T, first, from hosts.Machine) {
	id, _, _ := strings.Cut(clusters.NewToken(t, first).Token, ".")
	const ask = "curl -sk -o /dev/null -w '%%{http_code}' %s 'https://%s:6444/bundle?kubernetes=v0&arch=amd64'"
	for credential, want := range map[string]string{
		"": "403",
		"-H 'Authorization: Bearer " + id + ".0123456789abcdef'":               "403",
		"-H 'Authorization: Bearer nonsense'":                                  "403",
		"-H 'Authorization: Bearer " + clusters.NewToken(t, first).Token + "'": "404", // it has none of that version
	} {
		if got := from.Sh(t, fmt.Sprintf(ask, credential, first.IP)); got != want {
			t.Errorf("%.40s: %s, want %s", credential, got, want)
		}
	}
}

// refusedOffer has the control planes lose their bundles for a moment: the worker says so, and
// changes nothing.
func refusedOffer(t *testing.T, first, second, worker hosts.Machine, before string) {
	move := map[hosts.Machine]string{first: hosts.Bundle, second: fetchedBundle}
	for m, path := range move {
		m.Sh(t, "mount --bind /dev/null "+path)
		defer m.Sh(t, "umount "+path)
	}
	refused(t, worker, clusters.JoinCommand(t, first), "bundle-offer")
	worker.SameWorld(t, "a join without images", before)
}
