package join

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestDiscover(t *testing.T) {
	m := newControlPlane(t, nil, nil)
	got, err := Discover(t.Context(), m.target())
	must.NoError(t, err)
	if got.Server != "https://10.0.0.1:6443" || got.ServerVersion != "v1.36.3" ||
		string(got.Settings) != "podCIDR: 10.1.0.0/16\n" {
		t.Errorf("got %+v", got)
	}
	if string(got.ClusterCA) != string(m.ca.pem()) || string(got.EtcdCA) != string(m.ca.pem()) {
		t.Errorf("got %+v", got)
	}
}

// Each way to be kept out has its own name, and a server that was not
// recognised never sees the token.
func TestDiscoverRefuses(t *testing.T) {
	t.Parallel()
	other := newAuthority(t)
	until := time.Now().Add(time.Hour)
	cases := []struct {
		problem string
		unseen  bool // no request may come through TLS
		chain   func(authority) tls.Certificate
		adjust  func(*testControlPlane)
		target  func(*TargetCluster)
	}{
		{problem: "ca-cert-hash", unseen: true, target: func(g *TargetCluster) { g.CAHash = pki.Hash(other.cert) }},
		{problem: "ca-cert-hash", unseen: true, target: func(g *TargetCluster) { g.CAHash = "sha256:12" }},
		{problem: "ca-cert-hash", unseen: true,
			chain: func(authority) tls.Certificate { return other.serving(t, "127.0.0.1", until, other) }},
		{problem: "man-in-the-middle", unseen: true,
			chain: func(ca authority) tls.Certificate { return other.serving(t, "127.0.0.1", until, ca) }},
		{problem: "master-address", unseen: true,
			chain: func(ca authority) tls.Certificate { return ca.serving(t, "10.9.9.9", until, ca) }},
		{problem: "clock", unseen: true, chain: func(ca authority) tls.Certificate {
			return ca.serving(t, "127.0.0.1", time.Now().Add(-time.Minute), ca)
		}},
		{problem: "clock", adjust: func(m *testControlPlane) {
			m.clock = func() time.Time { return time.Now().Add(time.Hour) }
		}},
		{problem: "token-unknown", target: func(g *TargetCluster) { g.Token = NewToken(time.Hour, Scope{}, "") }},
		{problem: "token-unknown", target: func(g *TargetCluster) { g.Token.secret = NewToken(0, Scope{}, "").secret }},
		{problem: "cluster-info", adjust: func(m *testControlPlane) { m.unsigned = true }},
		{problem: "cluster-info-forged", adjust: func(m *testControlPlane) { m.signed = "something else" }},
		{problem: "token-kind", adjust: func(m *testControlPlane) { m.token.Kind = ForControlPlane }},
		{problem: "token-kind", target: func(g *TargetCluster) { g.Kind = ForControlPlane }},
		{problem: "token-kind", adjust: func(m *testControlPlane) { m.token.Kind = "" }},
		{problem: "token-node", adjust: func(m *testControlPlane) { m.token.Node = "worker-2.lan" }},
		{problem: "control-plane-unreachable", unseen: true,
			target: func(g *TargetCluster) { g.Server = "127.0.0.1:1" }},
	}
	for _, c := range cases {
		t.Run(c.problem, func(t *testing.T) {
			m := newControlPlane(t, c.chain, c.adjust)
			target := m.target()
			if c.target != nil {
				c.target(&target)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := tryOnce(ctx, target)
			problems := step.Problems(err)
			if len(problems) != 1 || problems[0].Name != c.problem {
				t.Fatalf("got %v, want [%s]", err, c.problem)
			}
			if strings.Contains(err.Error(), target.Token.secret) {
				t.Errorf("the error tells the secret: %v", err)
			}
			if c.unseen && m.asked.Load() > 0 {
				t.Error("a server that was not recognised was sent the token")
			}
		})
	}
}

func tryOnce(ctx context.Context, target TargetCluster) error {
	d, err := newDiscovery(target)
	if err != nil {
		return err
	}
	_, err = d.cluster(ctx)
	return err
}

func TestSaveContract(t *testing.T) {
	m := newControlPlane(t, nil, nil)
	files := host.Files{Root: t.TempDir()}
	j := &Joining{Files: files, Target: m.target()}
	hosttest.Contract(t, tree(t, files.Root), j.Save())
}

// Once saved, neither master nor token is needed, and another cluster is refused.
func TestSaveThenWithoutMaster(t *testing.T) {
	m := newControlPlane(t, nil, nil)
	files := host.Files{Root: t.TempDir()}
	j := &Joining{Files: files, Target: m.target()}
	must.NoError(t, j.Save().Apply(t.Context()))
	for _, path := range []string{BootstrapKubeconfig, DataFile} {
		if info, err := os.Stat(files.Path(path)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	if saved, _ := files.Read(DataFile); strings.Contains(string(saved), "PRIVATE KEY") {
		t.Errorf("%s holds a key: %s", DataFile, saved)
	}
	m.Close()
	again := &Joining{Files: files}
	h, err := again.Data(t.Context())
	if err != nil || string(h.EtcdCA) != string(m.ca.pem()) || h.ServerVersion != "v1.36.3" {
		t.Errorf("got %+v, %v", h, err)
	}
	wrong := &Joining{Files: files, Target: TargetCluster{CAHash: pki.Hash(newAuthority(t).cert)}}
	if _, err := wrong.Data(t.Context()); len(step.Problems(err)) != 1 ||
		step.Problems(err)[0].Name != "joined-another" {
		t.Errorf("got %v", err)
	}
}

func TestForget(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	j := &Joining{Files: files}
	must.NoError(t, files.Write(BootstrapKubeconfig, []byte("x"), 0o600))
	if err := j.Forget().Apply(t.Context()); err == nil {
		t.Error("the token was dropped before the kubelet had a certificate")
	}
	must.NoError(t, files.Write(KubeletCertificate, newAuthority(t).pem(), 0o600))
	if err := j.Forget().Apply(t.Context()); err != nil || files.Exists(BootstrapKubeconfig) {
		t.Error(err)
	}
}

// tree prints the files below root, except for records of kube-bootstrap.
func tree(t *testing.T, root string) func() string {
	return func() string {
		var lines []string
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !strings.HasPrefix(path, root+host.StateDir) &&
				!strings.HasPrefix(root+host.StateDir, path) {
				lines = append(lines, path+" "+d.Type().String())
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n") + "\n"
	}
}
