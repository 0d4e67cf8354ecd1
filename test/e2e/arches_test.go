//go:build e2e && arches

package e2e

import (
	"archive/tar"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// programs are what must run, by image: the file, and how it tells its version.
var programs = map[string]struct {
	file string
	runs [][]string
}{
	"etcd":    {"usr/local/bin/etcd", [][]string{{"--version"}}},
	"flannel": {"opt/bin/flanneld", [][]string{{"--version"}}},
	"coredns": {"coredns", [][]string{{"-version"}}},
	"hyperkube": {"usr/local/bin/hyperkube", [][]string{{"kube-apiserver", "--version"}, {"kube-controller-manager", "--version"},
		{"kube-scheduler", "--version"}, {"kube-proxy", "--version"}, {"kubelet", "--version"}}},
}

// TestArches builds one bundle of all architectures (ARCHES names others),
// which takes a quarter of an hour each where nothing is cached, and runs what is in it.
func TestArches(t *testing.T) {
	archs := strings.Split(cmp.Or(os.Getenv("ARCHES"), "amd64,arm64,arm,ppc64le"), ",")
	path := filepath.Join("../../_output", "kubernetes-"+strings.Join(archs, "-")+".tar.zst")
	run(t, built.binary, "offline", "build", "--quick", "--arch", strings.Join(archs, ","), "--to", path)
	t.Log(run(t, built.binary, "offline", "verify", path, "--arch", strings.Join(archs, ",")))
	dir := t.TempDir()
	run(t, "sh", "-c", "zstd -q -dc "+path+" | tar -C "+dir+" -xf -")
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range archs {
		t.Run(arch, func(t *testing.T) { runsPrograms(t, index, arch) })
	}
}

func runsPrograms(t *testing.T, index v1.ImageIndex, arch string) {
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		name := filepath.Base(strings.Split(m.Annotations["org.opencontainers.image.ref.name"], ":")[0])
		wanted, ok := programs[name]
		if !ok {
			continue
		}
		variants, err := index.ImageIndex(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(t.TempDir(), name)
		takeOut(t, variants, arch, wanted.file, program)
		for _, args := range wanted.runs {
			t.Log(name, args, run(t, append(append(emulator(arch), program), args...)...))
		}
	}
}

func emulator(arch string) []string {
	if arch == runtime.GOARCH {
		return nil
	}
	return []string{"qemu-" + map[string]string{"arm64": "aarch64", "arm": "arm", "ppc64le": "ppc64le", "s390x": "s390x"}[arch] + "-static"}
}

// takeOut writes one file of an image to a place on this machine.
func takeOut(t *testing.T, index v1.ImageIndex, arch, file, to string) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	ours := func(d v1.Descriptor) bool { return d.Platform != nil && d.Platform.Architecture == arch }
	for _, m := range manifest.Manifests {
		if !ours(m) {
			continue
		}
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := extract(img, file, to); err != nil {
			t.Fatalf("%s for %s: %v", file, arch, err)
		}
		return
	}
	t.Fatalf("no image for %s", arch)
}

func extract(img v1.Image, file, to string) error {
	files := mutate.Extract(img)
	defer files.Close()
	archive := tar.NewReader(files)
	for {
		h, err := archive.Next()
		if err != nil {
			return err
		}
		if strings.TrimPrefix(h.Name, "/") != file {
			continue
		}
		out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, archive)
		return errors.Join(err, out.Close())
	}
}
