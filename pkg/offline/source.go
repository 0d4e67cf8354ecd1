package offline

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cniplugins"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Source describes the images of this host and where they come from.
type Source struct {
	Registry   *registry.Registry
	Docker     *docker.Engine
	Versions   image.Versions
	Path       string         // HostPath, or the value of --bundle
	Base       string         // the bundle on which Path was built; empty: none
	VerifyKey  string         // file of the public key that Path must be signed by; empty: it need not be signed
	Key        []byte         // the content of VerifyKey, before this host has the file
	NoKey      error          // why VerifyKey must not be read
	Offered    *bundle.Bundle // the head of the bundle that a step brings to Path; nil: no step does
	Images     []image.Image  // of the cluster
	Arch       string         // of this host
	Files      host.Files
	Broadcast  *bundle.Broadcast // of all loads of this host; nil: each load decompresses for itself
	KeepImages bool              // Undo does not remove images
	Expected   bool              // an earlier step of the run brings the bundle to Path
	Part       string            // name of the only image, "etcd", of a step of its own; empty: all images
}

// Only returns the source with one image, for a step of its own.
func (s Source) Only(name string) Source {
	s.Part = name
	s.Images = slices.DeleteFunc(slices.Clone(s.Images), func(i image.Image) bool { return i.Name != name })
	return s
}

// Open opens the bundle at Path.
func (s Source) Open() (*bundle.Bundle, error) {
	return bundle.Open(s.Path, s.Signed(), bundle.WithBase(s.Base), bundle.WithBroadcast(s.Broadcast))
}

// Signed returns the option that refuses a bundle without the required signature.
func (s Source) Signed() bundle.Option {
	if len(s.Key) > 0 {
		return bundle.SignedByKey(s.Key)
	}
	if s.NoKey != nil {
		return func(*bundle.Bundle) error { return fmt.Errorf("%w: %w", bundle.ErrKey, s.NoKey) }
	}
	return bundle.SignedBy(s.VerifyKey)
}

// InstallCNIPlugins is the step that installs the CNI plugins of this source.
func (s Source) InstallCNIPlugins() step.Step {
	open := func(ctx context.Context) (cniplugins.PluginSource, error) { return s.open(ctx) }
	install := cniplugins.Installer{Files: s.Files, Arch: s.Arch, Open: open, Remote: s.remote()}.Step()
	if s.Expected {
		check := install.Check
		install.Check = func(ctx context.Context) (step.Diff, error) {
			diff, err := check(ctx)
			if errors.Is(err, fs.ErrNotExist) {
				return step.Diff{"install those of the bundle"}, nil
			}
			return diff, err
		}
	}
	return install
}

// imageSource is an open Source: a *bundle.Bundle or the images in a Docker.
type imageSource interface {
	// Find returns the image of a reference for an architecture.
	Find(ref, arch string) (bundle.MultiPlatformImage, error)
	// CheckImages finds damage before anything is loaded.
	CheckImages(ctx context.Context, images []bundle.MultiPlatformImage, arch string) error
	// Archive returns an archive of images, which reports progress.
	Archive(ctx context.Context, images []bundle.MultiPlatformImage, arch string) bundle.Archive
	cniplugins.PluginSource
}

func (s Source) open(ctx context.Context) (imageSource, error) {
	if s.Docker != nil {
		return s.fromDocker(ctx)
	}
	if s.Registry != nil {
		return artifact.Open(ctx, s.Registry, s.Versions.Kubernetes, s.Signed())
	}
	return s.here()
}

// here returns the bundle at Path, or the head of the offered one until that is there: a dry run
// compares the images with it.
func (s Source) here() (*bundle.Bundle, error) {
	b, err := s.Open()
	if err == nil && s.Path == s.Files.Path(HostPath) && b.Manifest.Versions.Kubernetes != s.Versions.Kubernetes {
		b.Close()
		b, err = nil, fmt.Errorf("%s is of another version: %w", s.Path, fs.ErrNotExist) // that an upgrade installs
	}
	switch {
	case s.Offered == nil || err == nil && b.Identity() == s.Offered.Identity():
		return b, err
	case err == nil:
		b.Close()
	}
	return s.Offered, nil
}

// remote reports whether the source may be slow or unavailable: then names suffice.
func (s Source) remote() bool { return s.Registry != nil || s.Docker != nil }

// dockerImages are images that a user has loaded into a Docker of this host. Another store has
// the same image if it has the same layers under its name.
type dockerImages struct {
	docker docker.ImageService
	holder string                     // the image that holds the CNI plugins
	layers map[string][]digest.Digest // by reference
}

func (s Source) fromDocker(ctx context.Context) (*dockerImages, error) {
	l := &dockerImages{s.Docker.Images(), image.Ref(s.Versions, "hyperkube"), map[string][]digest.Digest{}}
	for _, img := range s.Images {
		layers, err := l.docker.Layers(ctx, img.Ref)
		if err != nil {
			return nil, fmt.Errorf("look for image %s in the main Docker: %w", img.Ref, err)
		}
		for _, d := range layers {
			l.layers[img.Ref] = append(l.layers[img.Ref], digest.Digest(d))
		}
	}
	return l, nil
}

func (*dockerImages) Close() error { return nil }

func (l *dockerImages) Find(ref, arch string) (bundle.MultiPlatformImage, error) {
	return bundle.MultiPlatformImage{Image: image.Image{Ref: ref},
		Platforms: map[string]bundle.PlatformImage{arch: {Layers: l.layers[ref]}}}, nil
}

// MissingIn returns the images that a Docker does not have.
func MissingIn(ctx context.Context, docker docker.ImageService, refs []string) (missing []string, err error) {
	for _, ref := range refs {
		has, err := docker.Has(ctx, ref)
		if err != nil {
			return nil, err
		}
		if !has {
			missing = append(missing, ref)
		}
	}
	return missing, nil
}

func (l *dockerImages) CheckImages(ctx context.Context, images []bundle.MultiPlatformImage, _ string) error {
	missing, err := MissingIn(ctx, l.docker, bundle.References(images))
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the main Docker has no image %s; bring it by `docker save IMAGE | ssh HOST docker load`",
			strings.Join(missing, ", "))
	}
	return err
}

// Archive has no error of its own: Docker reports its errors to the store, through the archive.
func (l *dockerImages) Archive(ctx context.Context, images []bundle.MultiPlatformImage, _ string) bundle.Archive {
	progress := step.NewCounter(ctx, "take images from the main Docker", 0)
	open := func() io.ReadCloser {
		return bundle.Pipe(func(w io.Writer) error {
			return l.docker.Save(ctx, io.MultiWriter(w, progress), bundle.References(images)...)
		})
	}
	return bundle.Archive{Open: open, Err: func() error { return nil }}
}

// CNIPlugins knows no digests: the plugins in the image are accepted as they are.
func (*dockerImages) CNIPlugins(string) (map[string]digest.Digest, error) {
	files := map[string]digest.Digest{}
	for _, name := range image.CNIPlugins {
		files[name] = ""
	}
	return files, nil
}

// ReadCNIPlugins searches all layers of the image that contains the plugins.
func (l *dockerImages) ReadCNIPlugins(ctx context.Context, _ string, names []string) io.ReadCloser {
	return bundle.Pipe(func(w io.Writer) error {
		saved := bundle.Pipe(func(w io.Writer) error { return l.docker.Save(ctx, w, l.holder) })
		defer saved.Close()
		out := tar.NewWriter(w)
		if err := pickFromLayers(saved, names, out); err != nil {
			return err
		}
		return out.Close()
	})
}

// pickFromLayers copies plugins out of a `docker save` archive, whose layers are tars too.
func pickFromLayers(archive io.Reader, names []string, out *tar.Writer) error {
	return rootfs.EachEntry(archive, func(_ string, h *tar.Header, layer io.Reader) error {
		if h.Typeflag != tar.TypeReg {
			return nil
		}
		return pickFromLayer(layer, names, out)
	})
}

// pickFromLayer skips members that are no tar: configs and indexes.
func pickFromLayer(layer io.Reader, names []string, out *tar.Writer) (err error) {
	pick := func(name string, h *tar.Header, content io.Reader) error {
		if h.Typeflag != tar.TypeReg || path.Dir("/"+name) != image.CNIDir || !slices.Contains(names, path.Base(name)) {
			return nil
		}
		if err = out.WriteHeader(h); err == nil {
			_, err = io.Copy(out, content)
		}
		return err
	}
	_ = rootfs.Unpacked(layer, func(plain io.Reader) error { return rootfs.EachEntry(plain, pick) })
	return err
}
