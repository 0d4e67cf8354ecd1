// Package programs puts kube-bootstrap itself into bundles, as one image with the program of each
// architecture, and takes it out.
package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
)

// name is the name of the image, of the file in it and of its parts in the cache.
const name = "kube-bootstrap"

// Source is where the programs of architectures come from.
type Source struct {
	Version string // of this program
	Dir     string // directory with the files kube-bootstrap-linux-ARCH; "": none
}

// noTag are the characters that the tag of an image cannot have.
var noTag = regexp.MustCompile(`[^\w.-]`)

// ref is the reference of the image. Its tag is the version, so that no machine gets another version than
// that of this program.
func (s Source) ref() string {
	return image.OurRegistry + "/" + name + ":" + noTag.ReplaceAllString(s.Version, "_")
}

// own reports whether this program is the one for an architecture.
func own(arch string) bool { return runtime.GOOS == "linux" && arch == runtime.GOARCH }

// File returns the path of the program for an architecture: this program, or else a file of Dir.
func (s Source) File(arch string) (string, error) {
	if own(arch) {
		return os.Executable()
	}
	if s.Dir == "" {
		return "", fmt.Errorf("this program is for %s/%s, not for linux/%s; set --programs to a directory with "+
			"programs",
			runtime.GOOS, runtime.GOARCH, arch)
	}
	path := filepath.Join(s.Dir, "kube-bootstrap-linux-"+arch)
	_, err := os.Stat(path)
	return path, err
}

// Check returns an error if Dir lacks the program of an architecture.
func (s Source) Check(archs []string) error {
	var errs []error
	for _, arch := range archs {
		if s.Dir != "" {
			_, err := s.File(arch)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Images returns the image with the programs, for each architecture; none without Dir. A layer is written
// into the cache directory.
func (s Source) Images(ctx context.Context, cacheDir string, archs []string) (built []image.Built, err error) {
	if s.Dir == "" {
		return nil, nil
	}
	for _, arch := range archs {
		one, err := s.image(ctx, cacheDir, arch)
		if err != nil {
			return nil, fmt.Errorf("program for %s: %w", arch, err)
		}
		built = append(built, one)
	}
	return built, nil
}

func (s Source) image(ctx context.Context, cacheDir, arch string) (built image.Built, err error) {
	built = image.Built{Image: image.Image{Name: name, Ref: s.ref()}, Arch: arch}
	path, err := s.File(arch)
	if err != nil {
		return built, err
	}
	sum, err := sumOf(path)
	if err != nil {
		return built, err
	}
	layer, err := rootfs.Layer(ctx, cacheDir, "layer-"+name+"-"+arch+"-"+sum,
		rootfs.Content{Files: map[string]string{name: path}})
	if err != nil {
		return built, err
	}
	built.OCI, err = image.Assemble([]v1.Layer{layer}, arch, v1.Config{Entrypoint: []string{"/" + name}})
	return built, err
}

// sumOf returns a part of the digest of a file.
func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash, _, err := v1.SHA256(file)
	return hash.Hex[:min(16, len(hash.Hex))], err
}

// For returns the path of the program for an architecture. If it is not this program, it comes from the
// bundle, or else from Dir. "" is no bundle.
func (s Source) For(ctx context.Context, bundlePath, arch string) (string, error) {
	if own(arch) || bundlePath == "" {
		return s.File(arch)
	}
	b, err := bundle.Open(bundlePath)
	if err != nil {
		return "", err
	}
	defer b.Close()
	found, err := b.Find(s.ref(), arch)
	if err != nil {
		return s.File(arch)
	}
	return s.extract(ctx, b, arch, found.Platforms[arch].Manifest)
}

// extract returns the path of the program in the cache, where it is kept by the digest of its image.
func (s Source) extract(ctx context.Context, b *bundle.Bundle, arch string, of digest.Digest) (string, error) {
	dir, err := cache.Get(ctx, cache.Dir(), name+"-"+arch+"-"+of.Encoded()[:16], func(dir string) error {
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		return errors.Join(bundle.CopyFile(b, file, s.ref(), arch, name), file.Close())
	})
	return filepath.Join(dir, name), err
}
