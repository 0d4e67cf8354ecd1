//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// networkPolicy creates a NetworkPolicy, which nothing enforces: status names it
// while it exists, and does not call the host damaged.
func networkPolicy(t *testing.T, master machine) {
	t.Helper()
	const named = "does not enforce NetworkPolicy default/deny-all"
	master.sh(t, `kubectl create -f - <<'END'
{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "deny-all", "namespace": "default"}, "spec": {"podSelector": {}}}
END`)
	if out := master.sh(t, "kube-bootstrap status"); !strings.Contains(out, named) || !strings.Contains(out, "[network-policy]") {
		t.Errorf("status does not name the NetworkPolicy:\n%s", out)
	}
	master.kubectl(t, "delete networkpolicy deny-all")
	if out := master.sh(t, "kube-bootstrap status"); strings.Contains(out, "NetworkPolicy") {
		t.Errorf("status names a NetworkPolicy that does not exist:\n%s", out)
	}
}
