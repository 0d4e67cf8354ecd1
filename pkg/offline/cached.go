package offline

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Fits returns nil if the bundle at path has all that a cluster without addons needs of this
// source.
func (s Source) Fits(path string) error {
	s.Path, s.Base = path, ""
	b, err := s.Open()
	if err != nil {
		return err
	}
	defer b.Close()
	if b.Manifest.Base != nil {
		return errors.New(path + " is usable only with the bundle that it was built on")
	}
	for _, i := range image.OfEveryCluster(s.Images) {
		if _, err := b.Find(i.Ref, s.Arch); err != nil {
			return err
		}
	}
	return nil
}

// Cached returns the path of a bundle in the cache that fits, or "". It prefers pulled images
// to images that were built.
func (s Source) Cached() string {
	paths, _ := filepath.Glob(DefaultPath(s.Versions, "*")) // the pattern is valid
	slices.SortStableFunc(paths, func(a, b string) int { return isPulled(b) - isPulled(a) })
	i := slices.IndexFunc(paths, func(path string) bool { return s.Fits(path) == nil })
	if i < 0 {
		return ""
	}
	return paths[i]
}

func isPulled(path string) int {
	if strings.HasSuffix(path, "-official.tar.zst") {
		return 1
	}
	return 0
}

// SaveBundle returns the step that keeps a bundle of the cache at HostPath, where later runs and
// the agent find it: their cache may be another one.
func (s Source) SaveBundle(path string) step.Step {
	return step.Step{
		ID: "keep-bundle", Name: "keep the bundle on this host",
		Check: func(context.Context) (step.Diff, error) {
			if s.Fits(s.Files.Path(HostPath)) == nil {
				return nil, nil
			}
			return step.Diff{"copy " + path + " to " + HostPath}, nil
		},
		Apply: func(ctx context.Context) error { return s.copy(ctx, path) },
		Undo: func(context.Context) error {
			if s.KeepImages {
				return nil
			}
			return s.Files.Drop(HostPath)
		},
	}
}

func (s Source) copy(ctx context.Context, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	return s.Files.WriteFrom(HostPath, io.TeeReader(from, step.NewCounter(ctx, "", info.Size())), 0o600)
}
