package kubelet

import (
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

func TestRenewOfTheKubelet(t *testing.T) {
	k := Kubelet{Files: host.Files{Root: t.TempDir()}, ControlPlane: true}
	if s := k.Renew([]string{"apiserver", "etcd-server"}); s.Name != "" {
		t.Errorf("a step for certificates that are not the kubelet's: %s", s.Name)
	}
	ca, err := pki.NewAuthority("kubernetes", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	put := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			pair, err := ca.Issue(pki.Request{CommonName: "system:node:one", Client: true}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Files.Write(path, append(pair.Cert, pair.Key...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(currentPair, servingPair)
	s := k.Renew([]string{"apiserver", "kubelet-client", "kubelet-server"})
	want := func(n int) {
		t.Helper()
		if diff, err := s.Check(t.Context()); err != nil || len(diff) != n {
			t.Errorf("%q, %v, want %d", diff, err, n)
		}
	}
	want(2)
	put(currentPair)
	want(1)
	if err := k.Files.Write(servingPair, []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(1)
	if err := k.Files.Remove(servingPair); err != nil {
		t.Fatal(err)
	}
	want(1)
	put(servingPair)
	want(0)
}
