package join

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// joinedHost is a worker that has joined, and keeps no token. The master does
// not answer.
func joinedHost(t *testing.T) (*Joining, *testControlPlane) {
	t.Helper()
	m := newControlPlane(t, nil, nil)
	files := host.Files{Root: t.TempDir()}
	must.NoError(t, (&Joining{Files: files, Target: m.target()}).Save().Apply(t.Context()))
	kubeconfig, err := pki.Kubeconfig{Server: "https://127.0.0.1:6440", Authority: m.ca.pem(), User: "u",
		PairFile: KubeletCertificate}.Encode()
	must.NoError(t, err)
	for path, data := range map[string][]byte{KubeletCertificate: m.ca.pem(), KubeletKubeconfig: kubeconfig} {
		must.NoError(t, files.Write(path, data, 0o600))
	}
	m.Close()
	target := TargetCluster{Server: m.target().Server, CAHash: m.target().CAHash}
	return &Joining{
		Files: files, Target: target, Known: Data{
			Server: "https://127.0.0.1:6440", ServerVersion: "v1.36.3", Settings: []byte("podCIDR: 10.1.0.0/16\n"),
		},
	}, m
}

// TestAHandoverThatWasLost: what this host has elsewhere is written again; the
// rest is a problem that names the file, at once.
func TestAHandoverThatWasLost(t *testing.T) {
	for path, repaired := range map[string]bool{DataFile: true, ClusterCAFile: true, EtcdCAFile: false} {
		for name, content := range map[string]string{"missing": "", "empty": "", "garbage": "\x00\xff{{garbage"} {
			t.Run(path+" "+name, func(t *testing.T) {
				j, _ := joinedHost(t)
				before, _ := j.Files.Read(path)
				must.NoError(t, j.Files.Remove(path))
				if name != "missing" {
					must.NoError(t, j.Files.Write(path, []byte(content), 0o600))
				}
				s := j.Save()
				if diff, err := s.Check(t.Context()); err != nil || len(diff) != 1 || !strings.Contains(diff[0], path) {
					t.Errorf("status says %q, %v", diff, err)
				}
				_, err := j.Data(t.Context())
				if !repaired {
					problems := step.Problems(err)
					if len(problems) != 1 || problems[0].Name != "join-data-lost" ||
						!strings.Contains(problems[0].Text, path) {
						t.Errorf("got %v", err)
					}
					return
				}
				must.NoError(t, s.Apply(t.Context()))
				if diff, err := s.Check(t.Context()); err != nil || len(diff) > 0 {
					t.Errorf("after the run: %q, %v", diff, err)
				}
				if after, _ := j.Files.Read(path); path == ClusterCAFile && string(after) != string(before) {
					t.Errorf("got %s", after)
				}
			})
		}
	}
}

// TestAnotherAuthorityIsNotTakenOver: only the one with the hash of the cluster.
func TestAnotherAuthorityIsNotTakenOver(t *testing.T) {
	j, _ := joinedHost(t)
	other := newAuthority(t)
	kubeconfig, err := pki.Kubeconfig{Server: "https://127.0.0.1:6440", Authority: other.pem(), User: "u",
		PairFile: KubeletCertificate}.Encode()
	must.NoError(t, err)
	for path, data := range map[string][]byte{KubeletKubeconfig: kubeconfig, ClusterCAFile: nil} {
		must.NoError(t, j.Files.Write(path, data, 0o600))
	}
	if _, err := j.Data(t.Context()); len(step.Problems(err)) != 1 || step.Problems(err)[0].Name != "join-data-lost" {
		t.Errorf("got %v", err)
	}
}
