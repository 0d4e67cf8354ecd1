//go:build e2e

package long

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
)

// TestTokenRegistry: a registry that knows its clients by their certificates,
// and lets in who shows a token of another server, is pushed to, and makes a
// cluster on the older containerd.
func TestTokenRegistry(t *testing.T) {
	m := hosts.New(t, "docker-26.1", "10.193.24.0/24", "token")[0]
	r, tokens := newTokenRegistry(t, "10.193.24.1")
	login := []string{"--registry-ca", r.Path("ca.crt"), "--registry-cert", r.Path("client.crt"), "--registry-key",
		r.Path("client.key"),
		"--registry-username", registries.PrivateUser, "--registry-password-file", r.Path("password")}
	t.Run("refusals", func(t *testing.T) { tokenRefusals(t, r, login) })
	t.Run("several architectures", func(t *testing.T) { pushArchs(t, r, tokens) })
	push := append([]string{"offline", "push", r.Addr + "/k8s", "--bundle", hosts.Built.Bundle}, login...)
	hosts.Local(t, append([]string{hosts.Built.Binary}, push...)...)
	if tokens.given.Load() == 0 {
		t.Error("nobody asked for a token")
	}
	t.Run("master", func(t *testing.T) { masterByToken(t, m, r) })
}

func newTokenRegistry(t *testing.T, ip string) (*registries.Private, *tokenServer) {
	t.Helper()
	r := &registries.Private{Dir: t.TempDir(), Addr: ip + ":5443"}
	r.Certificates(t, ip)
	r.Write(t, "password", []byte(registries.PrivatePassword))
	tokens := newTokenServer(t, ip, r.Pair)
	r.Serve(t, ", clientcas: ["+r.Path("ca.crt")+"]",
		`token: {realm: "`+tokens.URL+`/token", service: "`+tokenService+`", issuer: "`+tokenIssuer+
			`", rootcertbundle: `+r.Path("ca.crt")+`}`)
	return r, tokens
}

func tokenRefusals(t *testing.T, r *registries.Private, login []string) {
	r.Write(t, "wrong", []byte("wrong"))
	for problem, flags := range map[string][]string{
		"registry-client-cert": append(login[:2:2], login[6:]...),
		"registry-login":       append(login[:9:9], r.Path("wrong")),
		"registry-ca":          append([]string{"--registry-ca", r.Path("other.crt")}, login[2:]...),
	} {
		push := append([]string{hosts.Built.Binary, "offline", "push", r.Addr + "/k8s", "--bundle", hosts.Built.Bundle},
			flags...)
		_, err := host.Run(t.Context(), push...)
		if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(),
			registries.PrivatePassword) {
			t.Errorf("got %v, want %s", err, problem)
		}
	}
}

// pushArchs pushes one image for several architectures with a token that was
// asked for beforehand, and pulls each back.
func pushArchs(t *testing.T, r *registries.Private, tokens *tokenServer) {
	path := filepath.Join(t.TempDir(), "pause.tar.zst")
	registries.BuildPause(t, path)
	var all []access
	for _, repo := range []string{"pause", "kube-bootstrap/bundle"} {
		all = append(all, access{"repository", "archs/" + repo, []string{"pull", "push"}})
	}
	token, err := tokens.token(all)
	must.NoError(t, err)
	r.Write(t, "token", []byte(token))
	hosts.Local(t, hosts.Built.Binary, "offline", "push", r.Addr+"/archs", "--bundle", path, "--registry-ca",
		r.Path("ca.crt"),
		"--registry-cert", r.Path("client.crt"), "--registry-key", r.Path("client.key"), "--registry-token-file",
		r.Path("token"))
	certs := t.TempDir()
	for from, to := range map[string]string{
		"ca.crt": "ca.crt", "client.crt": "client.cert", "client.key": "client.key",
	} {
		data := must.Read(t, r.Path(from))
		must.NoError(t, os.WriteFile(filepath.Join(certs, to), data, 0o600))
	}
	for _, arch := range registries.PauseArchs {
		to := "dir:" + t.TempDir()
		hosts.Local(t, "skopeo", "--insecure-policy", "--override-arch", arch, "copy", "-q", "--src-cert-dir", certs,
			"--src-creds", registries.PrivateUser+":"+registries.PrivatePassword,
			"docker://"+r.Addr+"/archs/pause:"+catalog.Newest().Pause, to)
		if got := hosts.Local(t, "skopeo", "inspect", "--format", "{{.Architecture}}",
			to); strings.TrimSpace(got) != arch {
			t.Errorf("for %s comes one for %s", arch, got)
		}
	}
}

// masterByToken makes a cluster with the settings of the registry only.
func masterByToken(t *testing.T, m hosts.Machine, r *registries.Private) {
	hosts.Owned(t, m)
	before := m.World(t)
	for _, file := range []string{"ca.crt", "client.crt", "client.key", "password"} {
		m.Put(t, r.Path(file), "/root/"+file)
	}
	m.Sh(t, "kube-bootstrap master --registry "+r.Addr+
		"/k8s --registry-ca /root/ca.crt --registry-cert /root/client.crt --registry-key /root/client.key "+
		"--registry-username "+registries.PrivateUser+
		" --registry-password-file /root/password && rm /root/ca.crt /root/client.* /root/password")
	registries.PodsFrom(t, m, r, m)
	registries.KeptSecret(t, m)
	m.Sh(t, registries.ForgetRegistry(r)+"kube-bootstrap turndown --yes; "+clusters.Settled)
	m.SameWorld(t, "master from a registry, and turndown", before)
}
