//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestPull pulls from mirrors of the official sites, over a link that breaks,
// and makes a master of what came.
func TestPull(t *testing.T) {
	o := registries.NewOfficial(t)
	s := registries.StartSites(t, o.Registry, o.Files)
	p := &puller{
		Sites: s, cache: t.TempDir(), login: registries.Login(t, s.Host()),
		to: filepath.Join(t.TempDir(), "pulled.tar.zst"),
	}
	t.Run("refusals", func(t *testing.T) { p.refusals(t, o) })
	t.Run("a link that breaks", func(t *testing.T) { p.breaks(t, o) })
	t.Run("again", func(t *testing.T) { p.again(t) })
	t.Run("pushed", func(t *testing.T) { p.pushed(t) })
	t.Run("a master of it", func(t *testing.T) { p.master(t, o) })
}

// puller runs `offline pull` as a user does.
type puller struct {
	*registries.Sites
	cache, login, to string
}

func (p *puller) args(more ...string) []string { return p.from(p.Host(), more...) }

// from pulls from another registry than the usual one.
func (p *puller) from(registry string, more ...string) []string {
	args := []string{"offline", "pull", "--quick", "--progress", "plain", "--arch", "amd64", "--to", p.to, "--ca-file",
		p.CAFile,
		"--registry-mirror", "registry.k8s.io=" + registry + "/official", "--registry-mirror",
		"ghcr.io=" + registry + "/official",
		"--registry-mirror", "docker.io=" + registry + "/official", "--registry-mirror",
		"quay.io=" + registry + "/official",
		"--download-mirror", p.URL + "/files", "--cni-mirror", p.URL + "/files"}
	return append(args, more...)
}

func (p *puller) command(args []string) host.Command {
	return host.Command{Args: append([]string{hosts.Built.Binary}, args...), Env: []string{
		"KUBE_BOOTSTRAP_CACHE=" + p.cache, "DOCKER_CONFIG=" + p.login, "NO_PROXY=127.0.0.1"}}
}

// refused runs a pull that must fail with a text, and leave no bundle.
func (p *puller) refused(t *testing.T, text string, args []string) {
	t.Helper()
	_, err := p.command(args).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("it says %v, not %q", err, text)
	}
	if _, err := os.Stat(p.to); err == nil {
		t.Error("it left a bundle")
	}
}

func (p *puller) refusals(t *testing.T, o *registries.Official) {
	p.refused(t, "has a certificate of an authority that this machine does not trust; "+
		"give that authority's certificate with --ca-file",
		p.args("--ca-file", "/etc/ssl/certs/ca-certificates.crt"))
	p.refused(t, "uses plain HTTP", p.from(o.Registry))
	p.refused(t, "the name no-such-host.invalid cannot be resolved",
		p.args("--download-mirror", "https://no-such-host.invalid"))
	p.refused(t, "official/coreos/etcd:v3.6.99", p.args("--etcd-version", "3.6.99"))
	p.refused(t, "does not exist for arm64, only for amd64; "+
		"build it from source: `kube-bootstrap offline build --arch arm64`", p.args("--arch", "arm64"))
	out := *p
	out.login = t.TempDir()
	out.refused(t, "log in first: `docker login "+p.Host()+"`", p.args())
	kubelet := filepath.Join(o.Files, "release", o.Versions.Kubernetes, "bin/linux/amd64/kubelet")
	good := must.Read(t, kubelet)
	must.NoError(t, os.WriteFile(kubelet, bytes.Replace(good, []byte("exec"), []byte("evil"), 1), 0o644))
	p.refused(t, "kubelet does not match its checksum", p.args())
	must.NoError(t, os.WriteFile(kubelet, good, 0o644))
}

// breaks kills a pull in the middle, and has the next one go on over a link
// that breaks off and a server that wants to be left alone.
func (p *puller) breaks(t *testing.T, o *registries.Official) {
	must.NoError(t, os.RemoveAll(p.cache))
	big := "/v2/official/build-image/debian-base/blobs/" + o.Largest(t, "build-image/debian-base:bookworm-v1.0.6")
	p.Hold(big)
	run := exec.Command(hosts.Built.Binary, p.args()...)
	run.Env = append(os.Environ(), p.command(nil).Env...)
	must.NoError(t, run.Start())
	<-p.Holding
	wait.Until(t, time.Minute, "some of it came", func() error {
		for _, file := range p.partial(t) {
			if info, err := os.Stat(file); err == nil && info.Size() > 0 &&
				strings.HasSuffix(big, filepath.Base(file)) {
				return nil
			}
		}
		return errors.New("nothing came yet")
	})
	must.NoError(t, run.Process.Kill())
	_ = run.Wait()
	p.Cut(big, 1<<20)
	p.Refuse("/v2/official/pause/manifests/"+o.Versions.Pause, 1)
	p.GoOn()
	_, err := p.command(p.args()).Run(t.Context())
	must.NoError(t, err)
	got := p.Requests(big)
	if len(got) != 2 || !strings.Contains(got[0], "bytes=") || !strings.Contains(got[1], "bytes=") || got[0] == got[1] {
		t.Errorf("a blob that was cut twice was asked for by %q", got)
	}
	if n := len(p.Requests("/v2/official/pause/manifests/" + o.Versions.Pause)); n < 2 {
		t.Errorf("what was refused once was asked for %d times", n)
	}
	_, err = host.Run(t.Context(), hosts.Built.Binary, "offline", "verify", p.to)
	must.NoError(t, err)
}

// partial lists what has begun to come.
func (p *puller) partial(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.cache, "downloads/partial/*"))
	must.NoError(t, err)
	return files
}

// again fetches nothing.
func (p *puller) again(t *testing.T) {
	p.Forget()
	before, err := os.Stat(p.to)
	must.NoError(t, err)
	_, err = p.command(p.args()).Run(t.Context())
	must.NoError(t, err)
	for _, line := range p.Asked() {
		if strings.Contains(line, "/blobs/") || strings.HasSuffix(line, "kubelet") {
			t.Errorf("it asked for %s, which was there", line)
		}
	}
	if after, err := os.Stat(p.to); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the same bundle was written again: %v", err)
	}
}

// pushed expects that a pulled bundle can be pushed to a registry like a built
// bundle, with the credentials of `docker login`.
func (p *puller) pushed(t *testing.T) {
	out, err := p.command([]string{
		"offline", "push", p.Host() + "/pushed", "--bundle", p.to, "--registry-ca", p.CAFile, "-o", "json",
	}).Run(t.Context())
	must.NoError(t, err)
	all := hosts.Items[artifact.Pushed](t, string(out))
	names := strings.Fields(hosts.Local(t, hosts.Built.Binary, "offline", "list", p.Host()+"/pushed", "--bundle", p.to))
	if len(names) == 0 || len(all) != len(names) {
		t.Errorf("pushed %v, of %v", all, names)
	}
	for _, one := range all {
		if n := len(p.Requests("/v2" + strings.Replace(strings.TrimPrefix(one.Ref, p.Host()), ":", "/manifests/",
			1))); n == 0 || !slices.Contains(names, one.Ref) {
			t.Errorf("%s was not put there", one.Ref)
		}
	}
}

// master makes one out of the bundle; it needs nothing that was built.
func (p *puller) master(t *testing.T, o *registries.Official) {
	m := hosts.New(t, "docker-28.5", "10.193.9.0/24", "e2e-pull")[0]
	m.Put(t, p.to, "/var/tmp/pulled.tar.zst")
	m.Sh(t, "rm "+hosts.Bundle+"; kube-bootstrap master --bundle /var/tmp/pulled.tar.zst")
	for _, want := range []string{image.Ref(o.Versions, "coredns"), image.Ref(o.Versions, "pause")} {
		if got := m.Sh(t, "ctr -n k8s.io images ls -q"); !strings.Contains(got, want) {
			t.Errorf("containerd has no %s, only\n%s", want, got)
		}
	}
	if got := m.Sh(t, "docker -H unix:///run/docker-bootstrap.sock ps --format '{{.Image}}'"); !strings.Contains(got,
		image.Ref(o.Versions, "etcd")) {
		t.Errorf("etcd is not the official one: %s", got)
	}
	if got := m.Kubectl(t, "get nodes --no-headers"); !strings.Contains(got, " Ready ") {
		t.Error(got)
	}
	clusters.PodsReady(t, m, 1)
	was := m.Steady(t)
	m.Sh(t, "rm /var/tmp/pulled.tar.zst; kube-bootstrap status && kube-bootstrap master --bundle ''")
	if is := m.Running(t); is != was {
		t.Errorf("a second run restarted something:\n%s\nthen\n%s", was, is)
	}
}
