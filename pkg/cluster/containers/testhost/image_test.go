package testhost

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestEveryHostImageHasASetting(t *testing.T) {
	if got, want := slices.Sorted(slices.Values(config.HostImages)),
		slices.Sorted(maps.Keys(variants)); !slices.Equal(got, want) {
		t.Errorf("config names %q, there are %q", got, want)
	}
}

func TestImageReferenceFollowsItsContent(t *testing.T) {
	v := variants["docker-28.5"]
	before := v.reference("docker-28.5")
	v.Files = slices.Clone(v.Files)
	v.Files[0].Content += "\n"
	if v.reference("docker-28.5") == before {
		t.Error("a changed entry script gives the same image")
	}
	if before != variants["docker-28.5"].reference("docker-28.5") {
		t.Error("the reference is not stable")
	}
}

func TestSharedBundleFollowsItsSource(t *testing.T) {
	dir := t.TempDir()
	bundle := filepath.Join(dir, "b.tar.zst")
	write := func(content string) {
		t.Helper()
		os.Remove(bundle)
		must.Write(t, bundle, content)
	}
	c := clusterAt(t, &docker.Engine{Address: docker.DefaultAddress}, filepath.Join(dir, "cache"))
	for _, content := range []string{"one", "another"} {
		write(content)
		shared := Setup{Cluster: c, Files: []SharedFile{{From: bundle, Name: "bundle"}}}.Share()
		ctx := context.Background()
		if diff, err := shared.Check(ctx); err != nil || len(diff) == 0 {
			t.Fatalf("check before: %v %v", diff, err)
		}
		must.NoError(t, shared.Apply(ctx))
		if diff, err := shared.Check(ctx); err != nil || len(diff) > 0 {
			t.Fatalf("check after: %v %v", diff, err)
		}
		got, err := os.ReadFile(filepath.Join(c.Session.SharedDir(), "bundle"))
		if err != nil || string(got) != content {
			t.Errorf("hosts see %q, %v; want %q", got, err, content)
		}
	}
}

// TestAStoppedClusterWithoutItsSharedDirectory: a user has removed the cache while the cluster was
// off. The engine starts no host without its directory.
func TestAStoppedClusterWithoutItsSharedDirectory(t *testing.T) {
	c := clusterAt(t, &docker.Engine{Address: docker.DefaultAddress}, filepath.Join(t.TempDir(), "cache"))
	for _, stage := range (Setup{Cluster: c}).StartPlan([]string{"k-master-1"}) {
		for _, one := range stage {
			switch {
			case one.Name == "share files with the hosts":
				must.NoError(t, one.Apply(t.Context()))
			case strings.HasPrefix(one.Name, "switch"):
				if !session.FileExists(c.Session.SharedDir()) {
					t.Errorf("%q runs without %s", one.Name, c.Session.SharedDir())
				}
				return
			}
		}
	}
	t.Error("no host is switched on")
}

// TestABuildRemovesWhatAKilledOneLeft: the first build is killed before its program ends. The
// program is a script, and no engine imports the image.
func TestABuildRemovesWhatAKilledOneLeft(t *testing.T) {
	const name = "docker-28.5"
	bin, cached := t.TempDir(), t.TempDir()
	must.NoError(t, os.WriteFile(filepath.Join(bin, "mmdebstrap"), []byte("#!/bin/sh\necho rootfs\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("KUBE_BOOTSTRAP_DEBIAN_MIRROR", "http://127.0.0.1:1")
	c := clusterAt(t, docker.Open(filepath.Join(t.TempDir(), "none.sock")), cached)
	half := filepath.Join(cached, "hosts", "."+name+".half")
	must.NoError(t, os.MkdirAll(half, 0o755))
	must.Write(t, filepath.Join(half, "rootfs"), "roo")
	image := variants[name].reference(name)
	if err := makeImage(t.Context(), c, name, image); err == nil {
		t.Error("an engine that does not exist has imported the image")
	}
	left, err := filepath.Glob(filepath.Join(cached, "hosts", "*")) // also hidden files
	if want := []string{filepath.Join(cached, "hosts", strings.TrimPrefix(image, Images+":")+".tar.zst")}; err != nil ||
		!slices.Equal(left, want) {
		t.Errorf("the cache contains %q, want %q", left, want)
	}
}

// clusterAt returns the cluster k on an engine, which need not run.
func clusterAt(t *testing.T, engine *docker.Engine, cacheDir string) containers.Cluster {
	t.Helper()
	options := session.Selection{Name: "k", CacheDir: cacheDir}
	c, err := containers.Of(session.New(options, containers.DockerProvider{Engine: engine}, nil))
	must.NoError(t, err)
	return c
}
