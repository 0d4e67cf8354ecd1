//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// networkPolicy creates a NetworkPolicy, which nothing enforces: status names it
// while it exists, and does not call the host damaged.
func networkPolicy(t *testing.T, master hosts.Machine) {
	t.Helper()
	const named = "does not enforce NetworkPolicy default/deny-all"
	master.Sh(t, `kubectl create -f - <<'END'
{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
 "metadata": {"name": "deny-all", "namespace": "default"},
 "spec": {"podSelector": {}}}
END`)
	wait.Until(t, time.Minute, "status names the NetworkPolicy", func() error {
		out, err := master.Try(t.Context(), "kube-bootstrap status")
		if err == nil && (!strings.Contains(out, named) || !strings.Contains(out, "[network-policy]")) {
			err = errors.New(out)
		}
		return err
	})
	master.Kubectl(t, "delete networkpolicy deny-all")
	wait.Until(t, time.Minute, "status names no NetworkPolicy", func() error {
		out, err := master.Try(t.Context(), "kube-bootstrap status")
		if err == nil && strings.Contains(out, "NetworkPolicy") {
			err = errors.New(out)
		}
		return err
	})
}
