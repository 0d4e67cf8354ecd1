package offline

import (
	"context"
	"io"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/diff/apply"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/archive"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// unpacker unpacks layers in this process, as containerd does.
type unpacker struct {
	diff.Comparer
	mounting diff.Applier
	layers   content.Provider
}

func newUnpacker(theirs containerd.DiffService, layers content.Provider) unpacker {
	return unpacker{theirs, apply.NewFileSystemApplier(layers), layers}
}

// Apply implements diff.Applier. A plain layer is written where its files shall
// lie: no mount stays behind if we are killed, and its digest is known from when
// it came in.
func (u unpacker) Apply(ctx context.Context, layer ocispec.Descriptor, mounts []mount.Mount, options ...diff.ApplyOpt) (ocispec.Descriptor, error) {
	dir, how := directory(mounts)
	packed, err := images.DiffCompression(ctx, layer.MediaType)
	if dir == "" || err != nil || packed != "" {
		return u.mounting.Apply(ctx, layer, mounts, options...)
	}
	from, err := u.layers.ReaderAt(ctx, layer)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer from.Close()
	if _, err := archive.Apply(ctx, dir, io.NewSectionReader(from, 0, from.Size()), how...); err != nil {
		return ocispec.Descriptor{}, err
	}
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Size: layer.Size, Digest: layer.Digest}, nil
}

// directory returns where the files of a snapshot lie, if that is a directory:
// bound by itself, or the upper one of an overlay, where a file that hides one
// below is of a kind of its own.
func directory(mounts []mount.Mount) (dir string, how []archive.ApplyOpt) {
	if len(mounts) != 1 {
		return "", nil
	}
	switch m := mounts[0]; m.Type {
	case "bind":
		return m.Source, nil
	case "overlay":
		how = append(how, archive.WithConvertWhiteout(archive.OverlayConvertWhiteout))
		for _, option := range m.Options {
			if upper, ok := strings.CutPrefix(option, "upperdir="); ok {
				dir = upper
			}
			if lower, ok := strings.CutPrefix(option, "lowerdir="); ok {
				how = append(how, archive.WithParents(strings.Split(lower, ":")))
			}
		}
	}
	return dir, how
}
