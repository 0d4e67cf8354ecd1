//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// withoutSuperAdmin removes super-admin.conf, as an administrator may, and the
// role binding of the administrators, as an administrator should not.
func withoutSuperAdmin(t *testing.T, master machine) {
	t.Helper()
	const conf = "/etc/kubernetes/super-admin.conf"
	master.sh(t, "rm "+conf)
	master.kubectl(t, "delete clusterrolebinding kube-bootstrap:cluster-admins")
	master.sh(t, "kube-bootstrap master")
	if got := master.kubectl(t, "auth can-i '*' '*'"); got != "yes" {
		t.Errorf("the administrators may do everything: %s", got)
	}
	if out := master.sh(t, "kube-bootstrap status && kube-bootstrap certs list && ls /etc/kubernetes"); strings.Contains(out, "super-admin") {
		t.Errorf("a removed super-admin.conf is listed or issued again:\n%s", out)
	}
	master.sh(t, "kube-bootstrap certs renew super-admin.conf && test -s "+conf)
}
