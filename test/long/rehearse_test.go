//go:build e2e

package long

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/pages"
)

// TestRehearse types the page about rehearsals on this machine. A second cluster gets another
// network, since neither has one of its own.
func TestRehearse(t *testing.T) {
	l := clusterUser{localcluster.User{Cluster: "lab", Dir: t.TempDir()}}
	must.NoError(t, os.Symlink(hosts.Built.Bundle, filepath.Join(l.Dir, "kube.tar.zst")))
	t.Cleanup(func() {
		_, _ = l.Try(context.Background(), "kube-bootstrap cluster clean --yes --name lab; "+
			"kube-bootstrap cluster clean --yes --name two")
	})
	use, end := pages.Read(t, "rehearse.md").Split(t, "## Remove them")
	for _, block := range use.Commands() {
		l.Sh(t, block)
	}
	t.Run("files", func(t *testing.T) { l.copies(t) })
	t.Run("a second set of hosts", func(t *testing.T) {
		l.Sh(t, "kube-bootstrap cluster hosts --name two other")
		subnets := hosts.Docker(t, "network", "inspect", "-f", "{{(index .IPAM.Config 0).Subnet}}", "lab", "two")
		if a, b, _ := strings.Cut(subnets, "\n"); a == b || b == "" {
			t.Errorf("the hosts have the networks %q", subnets)
		}
		l.Sh(t, "kube-bootstrap cluster clean --yes --name two")
	})
	l.Refused(t, "cluster up --name lab", "[cluster-hosts-mixed]")
	for _, block := range end.Commands() {
		l.Sh(t, block)
	}
}

// copies copies files to a host and back.
func (l clusterUser) copies(t *testing.T) {
	t.Helper()
	l.Sh(t, `echo one >a && chmod 640 a && export KUBE_BOOTSTRAP_CLUSTER=lab
kube-bootstrap node scp a lab-1:
kube-bootstrap node scp lab-1:a b && cmp a b && test "$(stat -c %a b)" = 640
kube-bootstrap node scp a 2:/tmp/new/c && test "$(kube-bootstrap node ssh 2 cat /tmp/new/c '|' tr o O)" = One`)
	if _, err := l.Try(t.Context(), "kube-bootstrap node scp lab-1:missing x"); err == nil ||
		!strings.Contains(err.Error(), "No such file") || strings.Contains(err.Error(), "if [") {
		t.Errorf("a missing file of a node: %v", err)
	}
	l.Refused(t, "node scp . lab-1:", "[copy-file]")
	l.Refused(t, "node scp lab-1:/etc x", "[copy-file]")
}
