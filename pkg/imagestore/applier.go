package imagestore

import (
	"context"
	"io"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/archive"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layerApplier unpacks layers into snapshots in this process, with the code that
// containerd itself uses.
type layerApplier struct {
	diff.Comparer
	mounted  diff.Applier // of containerd: mounts the snapshot first
	layers   content.Provider
	unpacked unpackedDirs
}

// Apply implements diff.Applier. It writes an uncompressed layer directly into
// the directory of the snapshot: then no mount is left if this process is
// killed. The digest needs no second computation, as stagingStore verified it.
func (u layerApplier) Apply(
	ctx context.Context, layer ocispec.Descriptor, mounts []mount.Mount, diffOptions ...diff.ApplyOpt,
) (ocispec.Descriptor, error) {
	compression, err := images.DiffCompression(ctx, layer.MediaType)
	if err != nil || compression != "" {
		return u.mounted.Apply(ctx, layer, mounts, diffOptions...)
	}
	from, err := u.layers.ReaderAt(ctx, layer)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer from.Close()
	err = u.unpacked.unpack(ctx, layer.Digest, mounts, io.NewSectionReader(from, 0, from.Size()))
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Size: layer.Size, Digest: layer.Digest}, err
}

// unpack unpacks a layer into a snapshot: into its directory or, if it is of another
// kind, into a mount of it.
func (u unpackedDirs) unpack(ctx context.Context, layer digest.Digest, mounts []mount.Mount, from io.Reader) error {
	if dir, options := directory(mounts); dir != "" {
		u.add(layer, dir)
		_, err := archive.Apply(ctx, dir, from, options...)
		return err
	}
	return mount.WithTempMount(ctx, mounts, func(dir string) error {
		_, err := archive.Apply(ctx, dir, from)
		return err
	})
}

// directory returns the directory that contains the files of a snapshot: the
// source of a bind mount, or the upper directory of an overlay, which represents
// deleted files in its own format. It is empty for other kinds of mounts.
func directory(mounts []mount.Mount) (dir string, options []archive.ApplyOpt) {
	if len(mounts) != 1 {
		return "", nil
	}
	switch m := mounts[0]; m.Type {
	case "bind":
		return m.Source, nil
	case "overlay":
		options = append(options, overlayWhiteouts())
		for _, option := range m.Options {
			if upper, ok := strings.CutPrefix(option, "upperdir="); ok {
				dir = upper
			}
			if lower, ok := strings.CutPrefix(option, "lowerdir="); ok {
				options = append(options, archive.WithParents(strings.Split(lower, ":")))
			}
		}
	}
	return dir, options
}
