//go:build e2e

package long

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// rotateEncryptionKey replaces the key that encrypts Secrets, by a command that
// is killed in several steps. Afterwards each control plane has the new key only
// and reads a Secret from before.
func rotateEncryptionKey(t *testing.T, controlPlanes ...hosts.Machine) {
	first := controlPlanes[0]
	first.Kubectl(t, "create secret generic before-rotation --from-literal=a=kept")
	old := encryptionKeyNames(t, first)
	const run = "kube-bootstrap certs rotate --encryption-key"
	for i, step := range []string{
		"make a new encryption key", "have every control plane accept the new key",
		"encrypt all Secrets with the new key",
	} {
		if out := clusters.KillIn(t, controlPlanes[i%len(controlPlanes)], run, step); out != "137 "+step {
			t.Errorf("killed in %q: %s", step, out)
		}
	}
	if out, _ := first.Try(t.Context(), "kube-bootstrap status"); !strings.Contains(out,
		"a rotation of the encryption key is under way: the control planes use the new key") {
		t.Errorf("status does not name the rotation:\n%s", out)
	}
	if out, err := first.Try(t.Context(), "kube-bootstrap token create --control-plane 2>&1"); err == nil ||
		!strings.Contains(out, "[rotation-under-way]") {
		t.Errorf("a control plane can join now: %v\n%s", err, out)
	}
	first.Sh(t, run+" 2>&1")
	for _, m := range controlPlanes {
		if is := encryptionKeyNames(t, m); is == old || strings.Contains(is, " ") {
			t.Errorf("%s has the keys %s, and had %s", m.Name, is, old)
		}
		if value := m.Kubectl(t, "--server https://"+m.IP+
			":6443 get secret before-rotation -o 'jsonpath={.data.a}'"); value != "a2VwdA==" {
			t.Errorf("%s reads %q", m.Name, value)
		}
		upToDate(t, m)
	}
}

// rotateAccountKey replaces the key that signs tokens. A token of the old key is
// accepted until the second run of the command.
func rotateAccountKey(t *testing.T, controlPlanes ...hosts.Machine) {
	first := controlPlanes[0]
	first.Sh(t, `docker exec -i kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - <<'EOF'
apiVersion: v1
kind: Secret
metadata: {name: long-lived, annotations: {kubernetes.io/service-account.name: default}}
type: kubernetes.io/service-account-token
EOF`)
	stored := func() (token string) {
		t.Helper()
		wait.Until(t, time.Minute, "a token in the Secret", func() error {
			if token = first.Kubectl(t, "get secret long-lived -o 'jsonpath={.data.token}'"); token == "" {
				return errors.New("it has none")
			}
			return nil
		})
		return token
	}
	storedBefore, old := stored(), first.Kubectl(t, "create token default")
	const run = "kube-bootstrap certs rotate --service-account-key 2>&1"
	if out := first.Sh(t, run); !strings.Contains(out, "run the same command again after") {
		t.Errorf("it does not say when the old key can be dropped:\n%s", out)
	}
	if storedBefore == stored() {
		t.Error("the token in the Secret has not been replaced")
	}
	token := first.Kubectl(t, "create token default")
	for _, m := range controlPlanes {
		accepts(t, m, old, "200")
		accepts(t, m, token, "200")
	}
	if out, _ := first.Try(t.Context(), "kube-bootstrap status"); !strings.Contains(out,
		"a rotation of the service account key is under way") {
		t.Errorf("status does not name the rotation:\n%s", out)
	}
	// Their tokens are those of the new key from now on.
	first.Kubectl(t, "-n kube-system delete pod --wait=false -l 'k8s-app in (kube-dns,kube-proxy)'")
	first.Sh(t, strings.Replace(run, " 2>", " --now 2>", 1))
	for _, m := range controlPlanes {
		accepts(t, m, old, "401")
		accepts(t, m, token, "200")
		upToDate(t, m)
	}
}

// accepts compares what the API server of a host answers to a token.
func accepts(t *testing.T, m hosts.Machine, token, want string) {
	t.Helper()
	if is := m.Sh(t, `curl -sk -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer `+token+`' https://`+m.IP+
		`:6443/version`); is != want {
		t.Errorf("%s answers %s, want %s", m.Name, is, want)
	}
}

// encryptionKeyNames returns the names of the keys of an API server, the one
// that encrypts first.
func encryptionKeyNames(t *testing.T, m hosts.Machine) string {
	t.Helper()
	return m.Sh(t, `echo $(sed -n 's/ *- name: //p' /etc/kubernetes/apiserver/encryption.yaml)`)
}
