//go:build root

package kubelet

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestInstallKubectl(t *testing.T) {
	alone(t)
	k := fresh(t, true)
	s := InstallKubectl(k.Files, testBinary)
	hosttest.Contract(t, world(t, k.Files), s)
	must.NoError(t, s.Apply(t.Context()))
	out, err := k.Files.Read(kubectlPath)
	if want := string(kubectlScript(testBinary)); err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}
