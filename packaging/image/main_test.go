package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheSameProgramsGiveTheSameImage(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	programs := filepath.Join(t.TempDir(), "kube-bootstrap-linux")
	for _, arch := range []string{"amd64", "arm"} {
		must.Write(t, programs+"-"+arch, "for "+arch)
	}
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		must.NoError(t, write(dir, programs, "v1.2.3", []string{"amd64", "arm"}))
	}
	for _, name := range []string{"index.json", "manifest.json"} {
		if a, b := must.Read(t, filepath.Join(one, name)), must.Read(t, filepath.Join(two, name)); !bytes.Equal(a, b) {
			t.Errorf("%s differs:\n%s\n%s", name, a, b)
		}
	}
	var docker tarball.Manifest
	if err := json.Unmarshal(must.Read(t, filepath.Join(one, "manifest.json")), &docker); err != nil ||
		len(docker) != 2 {
		t.Fatalf("%+v, %v", docker, err)
	}
	if tags := docker[1].RepoTags; len(tags) != 1 || tags[0] != name+":v1.2.3-arm" {
		t.Errorf("tags %q", tags)
	}
	for _, file := range append(docker[1].Layers, docker[1].Config) {
		must.Read(t, filepath.Join(one, file))
	}
	platforms(t, one, "linux/amd64", "linux/arm/v7")
}

// platforms expects one index in the layout, with these platforms.
func platforms(t *testing.T, dir string, want ...string) {
	t.Helper()
	all, err := layout.ImageIndexFromPath(dir)
	must.NoError(t, err)
	outer, err := all.IndexManifest()
	if err != nil || len(outer.Manifests) != 1 {
		t.Fatalf("%+v, %v", outer, err)
	}
	index, err := all.ImageIndex(outer.Manifests[0].Digest)
	must.NoError(t, err)
	inner, err := index.IndexManifest()
	if err != nil || len(inner.Manifests) != len(want) {
		t.Fatalf("%+v, %v", inner, err)
	}
	for i, m := range inner.Manifests {
		if got := m.Platform.String(); got != want[i] {
			t.Errorf("platform %s, want %s", got, want[i])
		}
	}
}
