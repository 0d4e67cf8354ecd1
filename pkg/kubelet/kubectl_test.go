package kubelet

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const testBinary = "/opt/kube-bootstrap"

// TestKubectlOfTheUserStays: a kubectl that was installed before, in another
// directory, or after the step.
func TestKubectlOfTheUserStays(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		after bool
	}{
		"same path":       {kubectlPath, false},
		"other directory": {"/usr/bin/kubectl", false},
		"installed later": {kubectlPath, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := fresh(t, true)
			s := InstallKubectl(k.Files, testBinary)
			if c.after {
				must.NoError(t, s.Apply(t.Context()))
			}
			put(t, k.Files, c.path, "mine")
			if d, err := s.Check(t.Context()); err != nil || len(d) > 0 {
				t.Errorf("check: %q, %v", d, err)
			}
			must.NoError(t, s.Apply(t.Context()))
			must.NoError(t, s.Undo(t.Context()))
			if data, err := k.Files.Read(c.path); err != nil || string(data) != "mine" {
				t.Errorf("%q, %v", data, err)
			}
			if c.path != kubectlPath && k.Files.Exists(kubectlPath) {
				t.Error("a second kubectl was installed")
			}
		})
	}
}

// TestAnInterruptedInstallOfKubectlLeavesNothing: the script may be missing, or of the user.
func TestAnInterruptedInstallOfKubectlLeavesNothing(t *testing.T) {
	for _, user := range []string{"", "mine"} {
		k := fresh(t, true)
		const left = "/usr/local/bin/.kube-bootstrap-kubectl-123"
		put(t, k.Files, left, "#!")
		if user != "" {
			put(t, k.Files, kubectlPath, user)
		}
		must.NoError(t, InstallKubectl(k.Files, testBinary).Undo(t.Context()))
		if k.Files.Exists(left) || k.Files.Exists(kubectlPath) != (user != "") {
			t.Errorf("kubectl %q: left %t, kubectl %t", user, k.Files.Exists(left), k.Files.Exists(kubectlPath))
		}
	}
}
