package imagestore

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/semaphore"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// DockerStore is the image store of a Docker engine.
type DockerStore struct {
	kind    image.Store
	engine  *docker.Engine
	loading *semaphore.Weighted // acquired while Load runs
}

// Docker returns the image store of a Docker engine. The kind is
// image.Bootstrap or image.Main.
func Docker(kind image.Store, engine *docker.Engine) DockerStore {
	return DockerStore{kind, engine, semaphore.NewWeighted(1)}
}

// Kind implements Target.
func (s DockerStore) Kind() image.Store { return s.kind }

// State implements Target. An engine that does not run has no images.
func (s DockerStore) State(ctx context.Context, want RequiredImage) (Comparison, error) {
	layers, err := s.engine.Images().Layers(ctx, want.Ref)
	if err != nil || len(layers) == 0 {
		return Absent, err
	}
	same := func(got string, want digest.Digest) bool { return got == want.String() }
	if len(want.Layers) == 0 || slices.EqualFunc(layers, want.Layers, same) {
		return Same, nil
	}
	return Other, nil
}

// loadGrace is how long Docker may take to process an archive after it has
// received all of it.
const loadGrace = time.Minute

// Load implements Target. It stops at the end of ctx only until the whole archive is
// sent. Docker would finish a complete archive anyway, and name the images later.
func (s DockerStore) Load(ctx context.Context, open func() io.ReadCloser) error {
	if s.loading.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	defer s.loading.Release(1)
	archive := open()
	defer archive.Close()
	loading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(loadGrace, cancel) })()
	return s.engine.Images().Load(loading, archive)
}

// LayersOf finds the layers of images in the store. It waits until a Load that
// runs has ended.
func (s DockerStore) LayersOf(refs ...string) LayerDirs {
	return func(ctx context.Context) (map[digest.Digest]string, error) {
		if s.loading.Acquire(ctx, 1) != nil {
			return nil, context.Cause(ctx)
		}
		defer s.loading.Release(1)
		all := map[digest.Digest]string{}
		for _, ref := range refs {
			dirs, err := s.engine.Images().LayerDirs(ctx, ref)
			if err != nil {
				return nil, err
			}
			for layer, dir := range dirs {
				all[digest.Digest(layer)] = dir
			}
		}
		return all, nil
	}
}

// Users implements Target.
func (s DockerStore) Users(ctx context.Context, ref string) ([]string, error) {
	if s.kind == image.Bootstrap {
		return nil, nil // it runs only our own containers
	}
	return s.engine.Images().Users(ctx, ref)
}

// Remove implements Target.
func (s DockerStore) Remove(ctx context.Context, refs []string) error {
	if err := s.engine.Answers(ctx); err != nil {
		if s.kind == image.Bootstrap {
			return nil // its images are removed with its data directory
		}
		return fmt.Errorf("the %s does not answer, so its images cannot be removed; start it and try again: %w",
			s.kind, err)
	}
	return host.Each(refs, func(ref string) error {
		return step.Wrap(s.engine.Images().Remove(ctx, ref), "remove image %s", ref)
	})
}
