//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	wire "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	bundles "github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
)

// TestBundle: one file of several architectures, made twice from nothing and
// still the same, is read by every other tool there is.
func TestBundle(t *testing.T) {
	dir := t.TempDir()
	path, again := filepath.Join(dir, "pause.tar.zst"), filepath.Join(dir, "again.tar.zst")
	registries.BuildPause(t, path)
	registries.BuildPause(t, again)
	if sum(t, path) != sum(t, again) {
		t.Error("the same build, with nothing in the cache, gives other bytes")
	}
	lacks(t, path)
	plain := filepath.Join(dir, "pause.tar")
	hosts.Local(t, "zstd", "-q", "-d", path, "-o", plain)
	t.Run("skopeo", func(t *testing.T) { skopeo(t, plain) })
	t.Run("crane", func(t *testing.T) { crane(t, plain) })
	t.Run("docker here", func(t *testing.T) { dockerLoad(t, plain, hosts.LocalScript) })
	for i, engine := range []string{"docker-26.1", "docker-28.5"} {
		t.Run(engine, func(t *testing.T) {
			m := hosts.New(t, engine, fmt.Sprintf("10.193.%d.0/24", 40+i),
				"bundle-"+strings.TrimPrefix(engine, "docker-2")[:1])[0]
			m.Put(t, plain, "/root/pause.tar")
			dockerLoad(t, "/root/pause.tar", m.Sh)
			m.Sh(t, "ctr -n other images import --all-platforms /root/pause.tar && ctr -n other images check | grep "+
				registries.PauseImage)
			if engine == "docker-28.5" {
				refusesBundles(t, m)
			}
		})
	}
}

func sum(t *testing.T, path string) [32]byte {
	t.Helper()
	data := must.Read(t, path)
	return sha256.Sum256(data)
}

// lacks: a bundle of one image is sound, and not all that a cluster needs.
func lacks(t *testing.T, path string) {
	t.Helper()
	out, err := host.Run(t.Context(), hosts.Built.Binary, "offline", "verify", path, "--arch", "arm,s390x", "-o",
		"json")
	var report bundles.Report
	must.NoError(t, json.Unmarshal([]byte(out), &report))
	missing := strings.Join(report.Missing, "\n")
	for _, want := range []string{
		"quay.io/coreos/etcd:v" + catalog.Newest().Etcd + " for arm", "CNI plugin bridge for arm",
		"everything for s390x",
	} {
		if err == nil || !strings.Contains(missing, want) {
			t.Errorf("%q is not missing: %v\n%s", want, err, missing)
		}
	}
	if strings.Contains(missing, registries.PauseImage) || len(report.Archs) != len(registries.PauseArchs) {
		t.Errorf("report %+v", report)
	}
}

func skopeo(t *testing.T, plain string) {
	seen := map[string]bool{}
	for _, arch := range registries.PauseArchs {
		got := hosts.Local(t, "skopeo", "--override-arch", arch, "inspect", "--format", "{{.Architecture}} {{.Layers}}",
			"oci-archive:"+plain+":"+registries.PauseImage)
		if !strings.HasPrefix(got, arch+" ") || seen[got] {
			t.Errorf("for %s: %s", arch, got)
		}
		seen[got] = true
	}
	hosts.Local(t, "skopeo", "--insecure-policy", "copy", "-q", "--all", "oci-archive:"+plain+":"+registries.PauseImage,
		"dir:"+t.TempDir())
}

// crane's own library finds everything in its place; a registry that it is
// pushed to checks every digest.
func crane(t *testing.T, plain string) {
	dir := t.TempDir()
	hosts.Local(t, "tar", "-C", dir, "-xf", plain)
	index, err := layout.ImageIndexFromPath(dir)
	must.NoError(t, err)
	if err := validate.Index(index, validate.Fast); err != nil {
		t.Error(err)
	}
	server := httptest.NewServer(registry.New())
	defer server.Close()
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/pause:all")
	must.NoError(t, err)
	if err := wire.WriteIndex(ref, index, wire.WithContext(t.Context())); err != nil {
		t.Error(err)
	}
}

// dockerLoad: an engine knows one image by a name, so each architecture has
// its own.
func dockerLoad(t *testing.T, plain string, sh func(*testing.T, string) string) {
	sh(t, "docker load -q -i "+plain)
	for _, arch := range registries.PauseArchs {
		ref := strings.Replace(registries.PauseImage, ":", "-"+arch+":", 1)
		if got := sh(t, "docker image inspect -f '{{.Architecture}}' "+ref); got != arch {
			t.Errorf("%s is for %s", ref, got)
		}
		sh(t, "docker rmi "+ref)
	}
}

// refusesBundles: what is damaged, or not signed by the key that is asked for, is
// refused before anything is touched.
func refusesBundles(t *testing.T, m hosts.Machine) {
	key := filepath.Join(t.TempDir(), "key")
	hosts.Local(t, "openssl", "genpkey", "-algorithm", "ed25519", "-out", key)
	hosts.Local(t, "openssl", "pkey", "-in", key, "-pubout", "-out", key+".pub")
	m.Put(t, key+".pub", "/root/key.pub")
	m.Sh(t, "cp "+hosts.Bundle+" /root/damaged && printf X | "+
		"dd of=/root/damaged bs=1 conv=notrunc seek=$(($(stat -c %s /root/damaged)/2)) 2>&1")
	m.Sh(t, "head -c $(($(stat -c %s /root/damaged)/3)) "+hosts.Bundle+" >/root/short")
	before := m.SettledWorld(t)
	for flags, want := range map[string]string{
		"--bundle /root/damaged": "is cut short or damaged",
		"--bundle /root/short":   "is cut short or damaged",
		"--bundle " + hosts.Bundle + " --verify-key /root/key.pub": "not to be trusted: it has no signature",
		"--bundle " + hosts.Bundle + " --kubernetes-version 1.37.0": "contains Kubernetes " +
			catalog.Newest().Patch + ", not v1.37.0",
		"--bundle " + hosts.Bundle + " --ignore-preflight arch --arch s390x": "it is for amd64, not for s390x",
		"--bundle " + hosts.Bundle + " --verify-key /root/damaged":           "is no key in PEM",
		"--bundle /root/key.pub": "not a bundle",
		"--bundle /root/none":    "no bundle at /root/none",
	} {
		_, err := m.Try(context.Background(), "kube-bootstrap master "+flags)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("master %s: got %v, want %q", flags, err, want)
		}
	}
	m.SameWorld(t, "a bundle that was refused", before)
}
