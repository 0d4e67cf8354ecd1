//go:build e2e && long

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTokenRegistry: a registry that knows its clients by their certificates,
// and lets in who shows a token of another server, is pushed to, and makes a
// cluster on the older containerd.
func TestTokenRegistry(t *testing.T) {
	m := hosts(t, "docker-26.1", "10.193.24.0/24", "token")[0]
	r, tokens := newTokenRegistry(t, "10.193.24.1")
	login := []string{"--registry-ca", r.path("ca.crt"), "--registry-cert", r.path("client.crt"), "--registry-key", r.path("client.key"),
		"--registry-username", registryUser, "--registry-password-file", r.path("password")}
	t.Run("refusals", func(t *testing.T) { tokenRefusals(t, r, login) })
	t.Run("several architectures", func(t *testing.T) { pushArchs(t, r, tokens) })
	push := append([]string{"offline", "push", r.addr + "/k8s", "--bundle", built.bundle}, login...)
	run(t, append([]string{built.binary}, push...)...)
	if tokens.given.Load() == 0 {
		t.Error("nobody asked for a token")
	}
	t.Run("master", func(t *testing.T) { masterByToken(t, m, r) })
}

func newTokenRegistry(t *testing.T, ip string) (*privateRegistry, *tokenServer) {
	t.Helper()
	r := &privateRegistry{dir: t.TempDir(), addr: ip + ":5443"}
	r.certificates(t, ip)
	r.write(t, "password", []byte(registryPassword))
	tokens := newTokenServer(t, ip, r.pair)
	r.serve(t, ", clientcas: ["+r.path("ca.crt")+"]",
		`token: {realm: "`+tokens.URL+`/token", service: "`+tokenService+`", issuer: "`+tokenIssuer+`", rootcertbundle: `+r.path("ca.crt")+`}`)
	return r, tokens
}

func tokenRefusals(t *testing.T, r *privateRegistry, login []string) {
	r.write(t, "wrong", []byte("wrong"))
	for problem, flags := range map[string][]string{
		"registry-client-cert": append(login[:2:2], login[6:]...),
		"registry-login":       append(login[:9:9], r.path("wrong")),
		"registry-ca":          append([]string{"--registry-ca", r.path("other.crt")}, login[2:]...),
	} {
		push := append([]string{built.binary, "offline", "push", r.addr + "/k8s", "--bundle", built.bundle}, flags...)
		_, err := host.Run(t.Context(), push...)
		if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), registryPassword) {
			t.Errorf("got %v, want %s", err, problem)
		}
	}
}

// pushArchs pushes one image for several architectures with a token that was
// asked for beforehand, and pulls each back.
func pushArchs(t *testing.T, r *privateRegistry, tokens *tokenServer) {
	path := filepath.Join(t.TempDir(), "pause.tar.zst")
	buildPause(t, path)
	var all []access
	for _, repo := range []string{"pause", "kube-bootstrap/bundle"} {
		all = append(all, access{"repository", "archs/" + repo, []string{"pull", "push"}})
	}
	token, err := tokens.token(all)
	must.NoError(t, err)
	r.write(t, "token", []byte(token))
	run(t, built.binary, "offline", "push", r.addr+"/archs", "--bundle", path, "--registry-ca", r.path("ca.crt"),
		"--registry-cert", r.path("client.crt"), "--registry-key", r.path("client.key"), "--registry-token-file", r.path("token"))
	certs := t.TempDir()
	for from, to := range map[string]string{"ca.crt": "ca.crt", "client.crt": "client.cert", "client.key": "client.key"} {
		data := must.Read(t, r.path(from))
		must.NoError(t, os.WriteFile(filepath.Join(certs, to), data, 0o600))
	}
	for _, arch := range pauseArchs {
		to := "dir:" + t.TempDir()
		run(t, "skopeo", "--insecure-policy", "--override-arch", arch, "copy", "-q", "--src-cert-dir", certs, "--src-creds", registryUser+":"+registryPassword,
			"docker://"+r.addr+"/archs/pause:"+catalog.Newest().Pause, to)
		if got := run(t, "skopeo", "inspect", "--format", "{{.Architecture}}", to); strings.TrimSpace(got) != arch {
			t.Errorf("for %s comes one for %s", arch, got)
		}
	}
}

// masterByToken makes a cluster with the settings of the registry only.
func masterByToken(t *testing.T, m machine, r *privateRegistry) {
	owned(t, m)
	before := m.world(t)
	for _, file := range []string{"ca.crt", "client.crt", "client.key", "password"} {
		m.put(t, r.path(file), "/root/"+file)
	}
	m.sh(t, "kube-bootstrap master --registry "+r.addr+"/k8s --registry-ca /root/ca.crt --registry-cert /root/client.crt --registry-key /root/client.key "+
		"--registry-username "+registryUser+" --registry-password-file /root/password && rm /root/ca.crt /root/client.* /root/password")
	podsFrom(t, m, r, m)
	keptSecret(t, m)
	m.sh(t, forgetRegistry(r)+"kube-bootstrap turndown --yes; "+settled)
	m.sameWorld(t, "master from a registry, and turndown", before)
}
