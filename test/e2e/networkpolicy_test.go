//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// networkPolicy creates a NetworkPolicy, which nothing enforces: status names it
// while it exists, and does not call the host damaged.
func networkPolicy(t *testing.T, master machine) {
	t.Helper()
	const named = "does not enforce NetworkPolicy default/deny-all"
	master.sh(t, `kubectl create -f - <<'END'
{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "deny-all", "namespace": "default"}, "spec": {"podSelector": {}}}
END`)
	eventually(t, time.Minute, "status names the NetworkPolicy", func() error {
		out, err := master.try(t.Context(), "kube-bootstrap status")
		if err == nil && (!strings.Contains(out, named) || !strings.Contains(out, "[network-policy]")) {
			err = errors.New(out)
		}
		return err
	})
	master.kubectl(t, "delete networkpolicy deny-all")
	eventually(t, time.Minute, "status names no NetworkPolicy", func() error {
		out, err := master.try(t.Context(), "kube-bootstrap status")
		if err == nil && strings.Contains(out, "NetworkPolicy") {
			err = errors.New(out)
		}
		return err
	})
}
