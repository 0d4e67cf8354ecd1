//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// rotateEncryptionKey replaces the key that encrypts Secrets, by a command that
// is killed in several steps. Afterwards each control plane has the new key only
// and reads a Secret from before.
func rotateEncryptionKey(t *testing.T, controlPlanes ...machine) {
	first := controlPlanes[0]
	first.kubectl(t, "create secret generic before-rotation --from-literal=a=kept")
	old := encryptionKeyNames(t, first)
	const run = "kube-bootstrap certs rotate --encryption-key"
	for i, step := range []string{"make a new encryption key", "have every control plane accept the new key", "encrypt all Secrets with the new key"} {
		if out := killIn(t, controlPlanes[i%len(controlPlanes)], run, step); out != "137 "+step {
			t.Errorf("killed in %q: %s", step, out)
		}
	}
	if out, _ := first.try(t.Context(), "kube-bootstrap status"); !strings.Contains(out, "a rotation of the encryption key is under way: the control planes use the new key") {
		t.Errorf("status does not name the rotation:\n%s", out)
	}
	if out, err := first.try(t.Context(), "kube-bootstrap token create --control-plane"); err == nil || !strings.Contains(out, "[rotation-under-way]") {
		t.Errorf("a control plane can join now: %v\n%s", err, out)
	}
	first.sh(t, run+" 2>&1")
	for _, m := range controlPlanes {
		if is := encryptionKeyNames(t, m); is == old || strings.Contains(is, " ") {
			t.Errorf("%s has the keys %s, and had %s", m.name, is, old)
		}
		if value := m.kubectl(t, "--server https://"+m.ip+":6443 get secret before-rotation -o 'jsonpath={.data.a}'"); value != "a2VwdA==" {
			t.Errorf("%s reads %q", m.name, value)
		}
		inPlace(t, m)
	}
}

// encryptionKeyNames returns the names of the keys of an API server, the one
// that encrypts first.
func encryptionKeyNames(t *testing.T, m machine) string {
	t.Helper()
	return m.sh(t, `echo $(sed -n 's/ *- name: //p' /etc/kubernetes/apiserver/encryption.yaml)`)
}
