package join

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const sharedFile = "/etc/kubernetes/pki/sa.key"

// sharing is a master that hands over one file under key.
func sharing(t *testing.T, key certkey.Key) *testControlPlane {
	t.Helper()
	plain, err := json.Marshal(map[string][]byte{sharedFile: []byte("secret"), "/etc/shadow": []byte("root::0")})
	must.NoError(t, err)
	sealed, err := key.Seal(plain)
	must.NoError(t, err)
	return newControlPlane(t, nil, func(m *testControlPlane) { m.sealed, m.token.Kind = sealed, ForControlPlane })
}

func (m *testControlPlane) joiningControlPlane(t *testing.T, key certkey.Key) *Joining {
	t.Helper()
	target := m.target()
	target.Key, target.Kind = key, ForControlPlane
	return &Joining{Files: host.Files{Root: t.TempDir()}, Target: target, Shares: []host.File{{Path: sharedFile}}}
}

func TestControlPlaneIsHandedWhatItSharesAndNoMore(t *testing.T) {
	key := certkey.New()
	j := sharing(t, key).joiningControlPlane(t, key)
	if diff, err := j.Save().Check(t.Context()); err != nil || !strings.Contains(diff.String(), sharedFile) {
		t.Errorf("a fresh host: %v, %v", diff, err)
	}
	must.NoError(t, j.Save().Apply(t.Context()))
	if diff, err := j.Save().Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("after it: %v, %v", diff, err)
	}
	data, err := j.Files.Read(sharedFile)
	info, _ := os.Stat(j.Files.Path(sharedFile))
	if err != nil || string(data) != "secret" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", data, info, err)
	}
	if j.Files.Exists("/etc/shadow") || j.Files.Exists(BootstrapKubeconfig) {
		t.Error("a file was written that is none of a control plane's")
	}
	// A rerun needs neither master nor key, and keeps what changed since.
	must.NoError(t, j.Files.Write(sharedFile, []byte("renewed"), 0o600))
	again := &Joining{Files: j.Files, Shares: j.Shares}
	must.NoError(t, again.Save().Apply(t.Context()))
	if data, _ := j.Files.Read(sharedFile); string(data) != "renewed" {
		t.Errorf("a rerun put back %q", data)
	}
}

func TestCertificateKeyProblems(t *testing.T) {
	key := certkey.New()
	m := sharing(t, key)
	expired := newControlPlane(t, nil, func(m *testControlPlane) { m.token.Kind = ForControlPlane })
	for name, j := range map[string]*Joining{
		"wrong":   m.joiningControlPlane(t, certkey.New()),
		"expired": expired.joiningControlPlane(t, key),
		"none":    m.joiningControlPlane(t, certkey.Key{}),
	} {
		err := j.Save().Apply(t.Context())
		if problems := step.Problems(err); len(problems) != 1 || problems[0].Name != "certificate-key" {
			t.Errorf("%s: %v", name, err)
		}
		if j.Files.Exists(DataFile) {
			t.Errorf("%s: something was written", name)
		}
	}
}
