//go:build e2e

package long

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// rotateAuthorities replaces the certificate authorities, by a command that is
// killed in several steps. Afterwards no host trusts the old ones, and neither a
// token nor an administrator's certificate of before opens anything.
func rotateAuthorities(t *testing.T, controlPlanes []hosts.Machine, workers ...hosts.Machine) {
	first := controlPlanes[0]
	first.Sh(t, "kube-bootstrap token create && cp /etc/kubernetes/admin.conf /run/before.conf")
	old := first.Sh(t, "cat /etc/kubernetes/pki/ca.crt")
	const run = "kube-bootstrap certs rotate --ca"
	for i, step := range []string{
		"make new certificate authorities",
		"have every control plane accept the new authorities", "have every worker accept the new authorities",
		"have every control plane use the new authorities", "have every worker use the new authorities",
		"have every control plane drop the old authorities",
	} {
		if out := clusters.KillIn(t, controlPlanes[i%len(controlPlanes)], run, step); out != "137 "+step {
			t.Errorf("killed in %q: %s", step, out)
		}
	}
	if out, err := first.Try(t.Context(), "kube-bootstrap token create 2>&1"); err == nil ||
		!strings.Contains(out, "[rotation-under-way]") {
		t.Errorf("a host can join now: %v\n%s", err, out)
	}
	first.Sh(t, run+" 2>&1")
	if out := first.Sh(t, "kube-bootstrap token list"); strings.Contains(out, "worker") {
		t.Errorf("a token of before is left:\n%s", out)
	}
	if out, err := first.Try(t.Context(), "docker exec -i kubelet kubectl --kubeconfig /dev/stdin get nodes "+
		"</run/before.conf 2>&1"); err == nil {
		t.Errorf("the administrator's certificate of before opens the API:\n%s", out)
	}
	for _, m := range append(slices.Clone(controlPlanes), workers...) {
		if now := m.Sh(t, "cat /etc/kubernetes/pki/ca.crt"); now == old || strings.Count(now, "BEGIN") != 1 {
			t.Errorf("%s trusts\n%s", m.Name, now)
		}
		upToDate(t, m)
	}
}
