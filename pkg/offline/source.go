package offline

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cniplugins"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Source describes the images of this host and where they come from: a Docker of
// this host, a registry, or else the bundle at Path.
type Source struct {
	Registry   *registry.Registry
	Docker     *docker.Engine
	Versions   image.Versions
	Path       string        // HostPath, or the value of --bundle
	Base       string        // the bundle on which Path was built; empty: none
	VerifyKey  string        // file of the public key that Path must be signed by; empty: it need not be signed
	Images     []image.Image // of the cluster
	Arch       string        // of this host
	Files      host.Files
	Broadcast  *bundle.Broadcast // of all loads of this host; nil: each load decompresses for itself
	KeepImages bool              // Undo does not remove images
	Part       string            // name of the only image, "etcd", of a step of its own; empty: all images
}

// Open opens the bundle at Path.
func (s Source) Open() (*bundle.Bundle, error) {
	return bundle.Open(s.Path, bundle.SignedBy(s.VerifyKey), bundle.WithBase(s.Base), bundle.WithBroadcast(s.Broadcast))
}

// InstallCNIPlugins is the step that installs the CNI plugins of this source.
func (s Source) InstallCNIPlugins() step.Step {
	open := func(ctx context.Context) (cniplugins.Source, error) { return s.open(ctx) }
	return cniplugins.Installer{Files: s.Files, Arch: s.Arch, Open: open, Remote: s.remote()}.Step()
}

// imageSource is an open Source: a *bundle.Bundle or the images in a Docker.
type imageSource interface {
	// Find returns the image of a reference for an architecture.
	Find(ref, arch string) (bundle.Image, error)
	// CheckImages finds damage before anything is loaded.
	CheckImages(ctx context.Context, images []bundle.Image, arch string) error
	// Archive returns an archive of images, which reports progress.
	Archive(ctx context.Context, images []bundle.Image, arch string) bundle.Archive
	cniplugins.Source
}

func (s Source) open(ctx context.Context) (imageSource, error) {
	if s.Docker != nil {
		return s.fromDocker(ctx)
	}
	opened, err := s.openBundle(ctx)
	if err != nil {
		return nil, err // not an interface that contains a nil pointer
	}
	return opened, nil
}

func (s Source) openBundle(ctx context.Context) (*bundle.Bundle, error) {
	if s.Registry != nil {
		return artifact.Open(ctx, s.Registry, s.Versions.Kubernetes, bundle.SignedBy(s.VerifyKey))
	}
	return s.Open()
}

// remote reports whether the source is slow to open, or may be unavailable for a
// while: then a file or image that exists by its name is sufficient.
func (s Source) remote() bool { return s.Registry != nil || s.Docker != nil }
