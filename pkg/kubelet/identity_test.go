package kubelet

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestControlPlaneCertificate(t *testing.T) { synctest.Test(t, testControlPlaneCertificate) }

func testControlPlaneCertificate(t *testing.T) {
	i := fresh(t, true).Identity
	must.NoError(t, i.write(t.Context(), stopped))
	if diff, err := i.diff(); err != nil || len(diff) > 0 {
		t.Fatalf("after identify: %q, %v", diff, err)
	}
	time.Sleep(2 * pki.LeafLife)
	if diff, err := i.diff(); err != nil || !strings.Contains(diff.String(), "expired") {
		t.Errorf("years later: %q, %v", diff, err)
	}
	i.ControlPlane = false
	if _, err := i.diff(); err == nil || !strings.Contains(err.Error(), "[node-certificate]") {
		t.Errorf("years later on a worker: %v", err)
	}
}

// stopped stands for the container of a kubelet that does not run.
func stopped(context.Context) error { return nil }

// TestADamagedKubeconfig: a worker that has its certificate needs no token for
// another kubeconfig.
func TestADamagedKubeconfig(t *testing.T) {
	other, err := pki.NewAuthority("kubernetes", nil, time.Now())
	must.NoError(t, err)
	trusting, err := pki.Kubeconfig{Server: "https://10.0.0.1:6443", Authority: other.PEM().Cert, User: "x", PairFile: currentPair}.Encode()
	must.NoError(t, err)
	for _, worker := range []bool{true, false} {
		i := fresh(t, true).Identity
		must.NoError(t, i.write(t.Context(), stopped))
		i.ControlPlane = !worker
		want, _ := i.Files.Read(Kubeconfig)
		for _, content := range []string{"", "garbage: [", string(trusting)} {
			put(t, i.Files, Kubeconfig, content)
			if diff, err := i.diff(); len(diff) != 1 || err != nil {
				t.Errorf("worker %t: %q, %v", worker, diff, err)
			}
			must.NoError(t, i.write(t.Context(), stopped))
			if got, _ := i.Files.Read(Kubeconfig); string(got) != string(want) {
				t.Errorf("worker %t: got %s", worker, got)
			}
		}
	}
}

// TestAWorkerWithoutACertificate: only a worker that has joined and has no token
// needs another one.
func TestAWorkerWithoutACertificate(t *testing.T) {
	for name, c := range map[string]struct {
		files   []string
		problem bool
	}{
		"it has yet to join":      {nil, false},
		"it has a token":          {[]string{BootstrapConfig}, false},
		"it joins again":          {[]string{BootstrapConfig, Kubeconfig}, false},
		"its certificate is gone": {[]string{Kubeconfig}, true},
	} {
		i := fresh(t, false).Identity
		for _, path := range c.files {
			put(t, i.Files, path, "")
		}
		diff, err := i.diff()
		if found := step.Problems(err); len(diff) > 0 || len(found) > 0 != c.problem || err != nil != c.problem {
			t.Errorf("%s: got %q, %v", name, diff, err)
		}
	}
}
