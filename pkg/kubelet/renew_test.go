package kubelet

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestRenewOfTheKubelet(t *testing.T) {
	k := Kubelet{Identity: Identity{Files: host.Files{Root: t.TempDir()}, ControlPlane: true}}
	if s := k.Renew([]string{"apiserver", "etcd-server"}); s.Name != "" {
		t.Errorf("a step for certificates that are not the kubelet's: %s", s.Name)
	}
	ca := authorityOf(t)
	put := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			pair, err := ca.Issue(pki.CertificateRequest{CommonName: "system:node:one", Client: true}, time.Now())
			must.NoError(t, err)
			must.NoError(t, k.Files.Write(path, append(pair.Cert, pair.Key...), 0o600))
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
	must.NoError(t, k.Files.Write(servingPair, []byte("cut"), 0o600))
	want(1)
	must.NoError(t, k.Files.Remove(servingPair))
	want(1)
	put(servingPair)
	want(0)
}

func TestFollowAuthority(t *testing.T) {
	for _, controlPlane := range []bool{true, false} {
		i := Identity{Files: host.Files{Root: t.TempDir()}, ControlPlane: controlPlane, HostName: "one", Server: "https://127.0.0.1:6440"}
		old, new := authorityOf(t), authorityOf(t)
		signs := old
		i.Certificate = func(context.Context) ([]byte, error) {
			pair, err := signs.Issue(pki.CertificateRequest{CommonName: "system:node:one", Organizations: []string{"system:nodes"}, Client: true}, time.Now())
			return append(pair.Cert, pair.Key...), err
		}
		s := i.FollowAuthority()
		reach := func(phase string, issued bool, authorities ...*pki.Authority) {
			t.Helper()
			var bundle []byte
			for _, a := range authorities {
				bundle = append(bundle, a.PEM().Cert...)
			}
			put(t, i.Files, clientCA, string(bundle))
			before, _ := i.Files.Read(firstPair)
			started := trusted(i.Files)
			must.NoError(t, s.Apply(t.Context()))
			if diff, err := s.Check(t.Context()); err != nil || len(diff) > 0 {
				t.Errorf("%s: afterwards %v, %v", phase, diff, err)
			}
			after, _ := i.Files.Read(firstPair)
			if bytes.Equal(before, after) == issued {
				t.Errorf("%s: a new certificate: %t, want %t", phase, !issued, issued)
			}
			if len(started) > 0 && bytes.Equal(started, trusted(i.Files)) {
				t.Errorf("%s: a kubelet that was started before is not replaced", phase)
			}
		}
		put(t, i.Files, clientCA, string(old.PEM().Cert))
		must.NoError(t, i.writePair(t.Context()))
		must.NoError(t, i.writeKubeconfig())
		reach("accept", false, old, new)
		put(t, i.Files, clientCA, string(new.PEM().Cert)+string(old.PEM().Cert))
		if err := s.Apply(t.Context()); err == nil {
			t.Error("a certificate of the old authority was taken for one of the new")
		}
		signs = new
		reach("use", true, new, old)
		reach("drop", false, new)
	}
}

func authorityOf(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("kubernetes", nil, time.Now())
	must.NoError(t, err)
	return a
}
