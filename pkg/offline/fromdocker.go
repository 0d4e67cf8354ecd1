package offline

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// loadedImages are those that somebody loaded into a Docker of this host. They
// go by their names there; another store has the same if the layers are.
type loadedImages struct {
	docker *docker.Engine
	holder string                     // the image that holds the CNI plugins
	layers map[string][]digest.Digest // by reference
}

func (s Source) fromDocker(ctx context.Context) (*loadedImages, error) {
	l := &loadedImages{s.Docker, image.Ref(s.Versions, "hyperkube"), map[string][]digest.Digest{}}
	for _, img := range s.Images {
		layers, err := s.Docker.ImageLayers(ctx, img.Ref)
		if err != nil {
			return nil, fmt.Errorf("look for image %s in the main Docker: %w", img.Ref, err)
		}
		for _, d := range layers {
			l.layers[img.Ref] = append(l.layers[img.Ref], digest.Digest(d))
		}
	}
	return l, nil
}

func (*loadedImages) Close() error { return nil }

func (l *loadedImages) find(ref, arch string) (Entry, error) {
	return Entry{Image: image.Image{Ref: ref}, Variants: map[string]Variant{arch: {Layers: l.layers[ref]}}}, nil
}

// MissingIn lists those images that a Docker does not have.
func MissingIn(ctx context.Context, docker *docker.Engine, images []image.Image) ([]string, error) {
	var missing []string
	for _, img := range images {
		has, err := docker.HasImage(ctx, img.Ref)
		if err != nil {
			return nil, err
		}
		if !has {
			missing = append(missing, img.Ref)
		}
	}
	return missing, nil
}

func (l *loadedImages) check(ctx context.Context, entries []Entry, _ string) error {
	var images []image.Image
	for _, e := range entries {
		images = append(images, e.Image)
	}
	missing, err := MissingIn(ctx, l.docker, images)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the main Docker has no image %s; bring it by `docker save IMAGE | ssh HOST docker load`", strings.Join(missing, ", "))
	}
	return err
}

func (l *loadedImages) read(ctx context.Context, _ []Entry, _ string) archives {
	return &saving{ctx: ctx, docker: l.docker, progress: newProgress(ctx, "take images from the main Docker", 0)}
}

// saving opens archives of what Docker has. Docker itself tells a store what
// goes wrong.
type saving struct {
	ctx      context.Context
	docker   *docker.Engine
	progress *progress
}

func (*saving) failed() error { return nil }

func (s *saving) open(entries ...Entry) io.ReadCloser {
	return piped(func(w io.Writer) error {
		return s.docker.Save(s.ctx, io.MultiWriter(w, s.progress), references(entries)...)
	})
}

// CNIPlugins implements cniplugins.Source. It knows no digests: the plugins in
// the image are accepted as they are.
func (*loadedImages) CNIPlugins(string) (map[string]digest.Digest, error) {
	files := map[string]digest.Digest{}
	for _, name := range image.CNIPlugins {
		files[name] = ""
	}
	return files, nil
}

// ReadCNIPlugins implements cniplugins.Source. It searches all layers of the
// image that contains the plugins.
func (l *loadedImages) ReadCNIPlugins(ctx context.Context, _ string, names []string) io.ReadCloser {
	return piped(func(w io.Writer) error {
		saved := piped(func(w io.Writer) error { return l.docker.Save(ctx, w, l.holder) })
		defer saved.Close()
		out := tar.NewWriter(w)
		if err := pickFromLayers(saved, names, out); err != nil {
			return err
		}
		return out.Close()
	})
}

// pickFromLayers copies files of the plugins' directory out of a `docker save`
// archive, whose layers are tars themselves.
func pickFromLayers(archive io.Reader, names []string, out *tar.Writer) error {
	layers := tar.NewReader(archive)
	for {
		h, err := layers.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := pickFromLayer(layers, names, out); err != nil {
			return err
		}
	}
}

// pickFromLayer passes over what is no tar: configs and tables.
func pickFromLayer(layer io.Reader, names []string, out *tar.Writer) error {
	plain, err := unpacked(layer)
	if err != nil {
		return nil
	}
	files := tar.NewReader(plain)
	for {
		h, err := files.Next()
		if err != nil {
			return nil
		}
		inDir := path.Dir("/"+h.Name) == image.CNIDir
		if h.Typeflag != tar.TypeReg || !inDir || !slices.Contains(names, path.Base(h.Name)) {
			continue
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, files); err != nil {
			return err
		}
	}
}

func unpacked(layer io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(layer)
	if magic, err := buffered.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}
