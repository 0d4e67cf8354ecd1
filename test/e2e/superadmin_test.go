//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// withoutSuperAdmin removes super-admin.conf, as an administrator may, and the
// role binding of the administrators, as an administrator should not.
func withoutSuperAdmin(t *testing.T, master hosts.Machine) {
	t.Helper()
	const conf = "/etc/kubernetes/super-admin.conf"
	master.Sh(t, "rm "+conf)
	master.Kubectl(t, "delete clusterrolebinding kube-bootstrap:cluster-admins")
	master.Sh(t, "kube-bootstrap master")
	if got := master.Kubectl(t, "auth can-i '*' '*'"); got != "yes" {
		t.Errorf("the administrators may do everything: %s", got)
	}
	if out := master.Sh(t, "kube-bootstrap status && kube-bootstrap certs list && "+
		"ls /etc/kubernetes"); strings.Contains(out, "super-admin") {
		t.Errorf("a removed super-admin.conf is listed or issued again:\n%s", out)
	}
	master.Sh(t, "kube-bootstrap certs renew super-admin.conf && test -s "+conf)
}
