//go:build e2e

package arches

import (
	"archive/tar"
	"cmp"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	registry "github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
)

// programs are what must run, by image: the file, and how it tells its version.
var programs = map[string]struct {
	file string
	runs [][]string
}{
	"etcd":    {"usr/local/bin/etcd", [][]string{{"--version"}}},
	"flannel": {"opt/bin/flanneld", [][]string{{"--version"}}},
	"coredns": {"coredns", [][]string{{"-version"}}},
	"hyperkube": {"usr/local/bin/hyperkube", [][]string{{
		"kube-apiserver", "--version",
	}, {"kube-controller-manager", "--version"},
		{"kube-scheduler", "--version"}, {"kube-proxy", "--version"}, {"kubelet", "--version"}}},
}

// TestArches builds one bundle of all architectures (ARCHES names others),
// which takes a quarter of an hour each where nothing is cached, pushes it to a
// registry, and runs what comes from there for each of them.
func TestArches(t *testing.T) {
	archs := strings.Split(cmp.Or(os.Getenv("ARCHES"), "amd64,arm64,arm,ppc64le"), ",")
	bundle := filepath.Join("../../_output", "kubernetes-"+strings.Join(archs, "-")+".tar.zst")
	hosts.Local(t, hosts.Built.Binary, "offline", "build", "--quick", "--arch", strings.Join(archs, ","), "--to",
		bundle)
	t.Log(hosts.Local(t, hosts.Built.Binary, "offline", "verify", bundle, "--arch", strings.Join(archs, ",")))
	to := registries.StartRegistry(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // which login writes, and push reads
	hosts.LocalScript(t, "echo "+registries.Password+" | docker login --username "+registries.User+
		" --password-stdin "+to)
	pushed := hosts.Items[struct{ Ref, Digest string }](t, hosts.Local(t, hosts.Built.Binary, "offline", "push",
		to+"/k8s", "--insecure", "--bundle", bundle, "-o", "json"))
	for _, arch := range archs {
		t.Run(arch, func(t *testing.T) {
			for _, one := range pushed {
				pulled(t, one.Ref, arch)
				runsPrograms(t, one.Ref, arch)
			}
		})
	}
}

// pulled has an engine pull an image for an architecture.
func pulled(t *testing.T, ref, arch string) {
	t.Helper()
	hosts.Local(t, "docker", "pull", "-q", "--platform", "linux/"+arch, ref)
	if got := hosts.Local(t, "docker", "image", "inspect", "-f", "{{.Architecture}}",
		ref); strings.TrimSpace(got) != arch {
		t.Errorf("%s is for %s, and %s was asked for", ref, got, arch)
	}
	hosts.Local(t, "docker", "rmi", ref)
}

// runsPrograms takes the programs out of an image, as crane pulls it, and asks
// each for its version.
func runsPrograms(t *testing.T, at, arch string) {
	t.Helper()
	ref, err := name.ParseReference(at)
	must.NoError(t, err)
	wanted, ok := programs[path.Base(ref.Context().RepositoryStr())]
	if !ok {
		return
	}
	img, err := registry.Image(ref, registry.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}),
		registry.WithAuthFromKeychain(authn.DefaultKeychain))
	must.NoError(t, err)
	program := filepath.Join(t.TempDir(), "program")
	must.NoError(t, extract(img, wanted.file, program))
	for _, args := range wanted.runs {
		all := append([]string{
			"env", "ETCD_UNSUPPORTED_ARCH=" + arch, "sh", "-c", `exec "$@" 2>&1`, "sh",
		}, append(append(emulator(arch), program), args...)...)
		if got := hosts.Local(t, all...); !strings.Contains(got, strings.TrimPrefix(ref.Identifier(), "v")) {
			t.Errorf("%s for %s: %v says %s", at, arch, args, got)
		}
	}
}

func emulator(arch string) []string {
	if arch == runtime.GOARCH {
		return nil
	}
	return []string{
		"qemu-" + map[string]string{"arm64": "aarch64", "arm": "arm", "ppc64le": "ppc64le", "s390x": "s390x"}[arch] +
			"-static",
	}
}

// extract writes one file of an image to a place on this machine.
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
