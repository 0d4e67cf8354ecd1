//go:build e2e && long

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRehearse types the page about rehearsals on this machine. A second cluster gets another
// network, since neither has one of its own.
func TestRehearse(t *testing.T) {
	l := clusterUser{cluster: "lab", dir: t.TempDir()}
	must.NoError(t, os.Symlink(built.bundle, filepath.Join(l.dir, "kube.tar.zst")))
	t.Cleanup(func() {
		_, _ = l.try(context.Background(), "kube-bootstrap cluster clean --yes --name lab; kube-bootstrap cluster clean --yes --name two")
	})
	use, end := readPage(t, "rehearse.md").split(t, "## Remove them")
	for _, block := range use.commands() {
		l.sh(t, block)
	}
	t.Run("files", func(t *testing.T) { l.copies(t) })
	t.Run("a second set of hosts", func(t *testing.T) {
		l.sh(t, "kube-bootstrap cluster hosts --name two other")
		subnets := docker(t, "network", "inspect", "-f", "{{(index .IPAM.Config 0).Subnet}}", "lab", "two")
		if a, b, _ := strings.Cut(subnets, "\n"); a == b || b == "" {
			t.Errorf("the hosts have the networks %q", subnets)
		}
		l.sh(t, "kube-bootstrap cluster clean --yes --name two")
	})
	l.refused(t, "cluster up --name lab", "[cluster-hosts-mixed]")
	for _, block := range end.commands() {
		l.sh(t, block)
	}
}

// copies copies files to a host and back.
func (l clusterUser) copies(t *testing.T) {
	t.Helper()
	l.sh(t, `echo one >a && chmod 640 a && export KUBE_BOOTSTRAP_CLUSTER=lab
kube-bootstrap node scp a lab-1:
kube-bootstrap node scp lab-1:a b && cmp a b && test "$(stat -c %a b)" = 640
kube-bootstrap node scp a 2:/tmp/new/c && test "$(kube-bootstrap node ssh 2 cat /tmp/new/c '|' tr o O)" = One`)
	if _, err := l.try(t.Context(), "kube-bootstrap node scp lab-1:missing x"); err == nil || !strings.Contains(err.Error(), "No such file") || strings.Contains(err.Error(), "if [") {
		t.Errorf("a missing file of a node: %v", err)
	}
	l.refused(t, "node scp . lab-1:", "[copy-file]")
	l.refused(t, "node scp lab-1:/etc x", "[copy-file]")
}
