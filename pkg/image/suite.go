package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Suite is the end-to-end tests of a Kubernetes version, made from its source.
type Suite struct {
	Test   string   // the program with all tests
	Ginkgo string   // what runs it in parallel
	Images []string // `docker save` archives of the images that the tests run
	Refs   []string // their names, in that order
}

// suiteImage is an image of the tests that is made here, of Debian packages and
// a program of the Kubernetes sources.
type suiteImage struct {
	repo     string // below registry.k8s.io/e2e-test-images
	program  string // recipe of its program, "" if it has none
	packages []string
	links    map[string]string
	command  v1.Config
}

const suiteRegistry = "registry.k8s.io/e2e-test-images/"

func suiteImages() []suiteImage {
	applets := map[string]string{}
	for _, name := range strings.Fields(busyboxApplets) {
		applets["usr/bin/"+name] = "busybox" // bin itself is a link there
	}
	return []suiteImage{
		{
			repo: "agnhost", program: "agnhost",
			packages: []string{"base-files", "base-passwd", "bash", "bind9-dnsutils", "ca-certificates", "coreutils", "curl", "dash", "grep", "iperf",
				"iproute2", "netcat-openbsd", "procps", "sed", "util-linux"},
			links:   map[string]string{"usr/bin/nc": "nc.openbsd"}, // which its package's script would make
			command: v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}},
		},
		{
			repo: "busybox", packages: []string{"base-files", "base-passwd", "busybox-static"}, links: applets,
			command: v1.Config{Cmd: []string{"sh"}},
		},
		resolver("jessie-dnsutils"), // to 1.35
		resolver("glibc-dns-testing"),
	}
}

// resolver has dig and getent; the tests bring the script that calls them.
func resolver(repo string) suiteImage {
	return suiteImage{
		repo: repo, packages: []string{"base-files", "base-passwd", "bash", "bind9-dnsutils", "coreutils", "dash", "libc-bin"},
		command: v1.Config{Cmd: []string{"bash"}},
	}
}

// busyboxApplets are those that tests call.
const busyboxApplets = `[ ash awk base64 basename cat chmod chown cp cut date dd df dirname du echo egrep env expr false find grep
	head hostname id ifconfig ip kill ln ls mkdir mkfifo mknod mktemp mount mv nc netstat nproc nslookup od ping ping6 printf ps pwd readlink
	rm rmdir route sed seq sh sha256sum sleep sort stat stty sync tail tar tee telnet test time timeout top touch tr true
	truncate tty umount uname uniq uptime usleep vi wc wget which whoami xargs yes`

// Suite builds the tests of a version and the images that they run, or finds
// them in the cache. The names of the images are those that the tests say.
func (b *Builder) Suite(ctx context.Context, v Versions, arch string) (Suite, error) {
	part, err := b.compile(ctx, v, "suite", arch)
	if err != nil {
		return Suite{}, err
	}
	s := Suite{Test: filepath.Join(part.Dir, "e2e.test"), Ginkgo: filepath.Join(part.Dir, "ginkgo")}
	out, err := host.Run(ctx, s.Test, "--list-images")
	if err != nil {
		return s, err
	}
	for _, img := range suiteImages() {
		for _, ref := range strings.Fields(out) {
			if !strings.HasPrefix(ref, suiteRegistry+img.repo+":") {
				continue
			}
			archive, err := b.suiteArchive(ctx, v, img, ref, arch)
			if err != nil {
				return s, fmt.Errorf("build %s: %w", ref, err)
			}
			s.Images, s.Refs = append(s.Images, archive), append(s.Refs, ref)
		}
	}
	return s, nil
}

// suiteArchive returns the file of an image, as `docker save` would write it.
func (b *Builder) suiteArchive(ctx context.Context, v Versions, img suiteImage, ref, arch string) (string, error) {
	layers, err := b.suiteLayers(ctx, v, img, arch)
	if err != nil {
		return "", err
	}
	config := shape{}.config(img.repo, arch)
	config.Config = img.command
	config.Config.Env = []string{imagePath}
	built, err := assemble(layers, config)
	if err != nil {
		return "", err
	}
	id, err := built.ConfigName()
	if err != nil {
		return "", err
	}
	tag, err := name.NewTag(ref)
	if err != nil {
		return "", err
	}
	dir, err := Cached(ctx, b.Cache, "suite-"+img.repo+"-"+key(ref, id.String()), func(dir string) error {
		step.Report(ctx, "pack "+ref, 0, 0)
		return tarball.WriteToFile(filepath.Join(dir, "image.tar"), tag, built)
	})
	return filepath.Join(dir, "image.tar"), err
}

func (b *Builder) suiteLayers(ctx context.Context, v Versions, img suiteImage, arch string) ([]v1.Layer, error) {
	userland, err := b.suiteUserland(ctx, img, arch)
	if err != nil {
		return nil, err
	}
	own := content{Links: img.links}
	if img.program != "" {
		part, err := b.compile(ctx, v, img.program, arch)
		if err != nil {
			return nil, err
		}
		own.Files = map[string]string{img.program: filepath.Join(part.Dir, img.program)}
	}
	layer, err := b.layer(ctx, "layer-suite-"+img.repo+"-"+arch+"-"+key(own), own)
	return []v1.Layer{userland, layer}, err
}

func (b *Builder) suiteUserland(ctx context.Context, img suiteImage, arch string) (v1.Layer, error) {
	mirror, err := host.DebianMirror()
	if err != nil {
		return nil, err
	}
	dir, err := Cached(ctx, b.Cache, "suite-userland-"+arch+"-"+key(userlandRecipe, img.packages), func(dir string) error {
		step.Report(ctx, "fetch the userland of "+img.repo, 0, 0)
		raw := filepath.Join(dir, "raw.tar")
		defer os.Remove(raw)
		if err := debootstrap(ctx, arch, mirror, raw, img.packages); err != nil {
			return err
		}
		return tidyUserland(raw, filepath.Join(dir, "userland.tar"))
	})
	if err != nil {
		return nil, err
	}
	return openLayer(filepath.Join(dir, "userland.tar"))
}
