package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

// Write writes the bundle to path. The file appears there when it is complete.
func (b *Builder) Write(ctx context.Context, path string) error {
	return cache.InTemporary(ctx, path, path, func(work string) error {
		groups := b.groups()
		frames, err := b.frames(ctx, work, groups)
		if err != nil {
			return err
		}
		tmp := filepath.Join(work, "bundle")
		if err := b.join(tmp, groups, frames); err != nil {
			return err
		}
		return os.Rename(tmp, path)
	})
}

// join writes the head, the frames of the groups, and the end of the archive.
func (b *Builder) join(path string, groups [][]blobSource, frames []string) error {
	var head, end bytes.Buffer
	if err := compression.EncodeBytes(&end, make([]byte, 2*tarBlock)); err != nil {
		return err
	}
	if err := b.place(groups, frames, int64(end.Len())); err != nil {
		return err
	}
	if err := b.writeHead(&head); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := compression.EncodeBytes(file, head.Bytes()); err != nil {
		return err
	}
	for _, frame := range frames {
		if _, err := copyFile(file, frame); err != nil {
			return err
		}
	}
	if _, err := file.Write(end.Bytes()); err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func copyFile(w io.Writer, path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return io.Copy(w, file)
}

// place records the positions of all frames and blobs.
func (b *Builder) place(groups [][]blobSource, frames []string, fromEnd int64) error {
	b.manifest.Compression = b.compression.Name
	b.manifest.Frames = make([]Frame, len(frames))
	for i := len(frames) - 1; i >= 0; i-- {
		sum := digest.SHA256.Digester()
		size, err := copyFile(sum.Hash(), frames[i])
		if err != nil {
			return err
		}
		fromEnd += size
		b.manifest.Frames[i] = Frame{OffsetFromEnd: fromEnd, CompressedSize: size, Digest: sum.Digest()}
		var offset int64
		for _, blob := range groups[i] {
			b.manifest.Blobs[blob.digest] = Blob{Size: blob.size, Frame: i, Offset: offset}
			offset += memberSize(blob.size)
		}
	}
	return nil
}

// member is a small file in the head of a bundle.
type member struct {
	name string
	data []byte
}

func (b *Builder) writeHead(w io.Writer) error {
	tables, err := tables(b.index, b.manifest.dockerManifest())
	if err != nil {
		return err
	}
	b.manifest.Tables = map[string]digest.Digest{}
	for _, t := range tables {
		b.manifest.Tables[t.name] = digest.FromBytes(t.data)
	}
	manifest, err := json.Marshal(b.manifest)
	if err != nil {
		return err
	}
	members := []member{{manifestName, manifest}}
	if b.signer != nil {
		data, err := json.Marshal(sign(b.signer, manifest))
		if err != nil {
			return err
		}
		members = append(members, member{signatureName, data})
	}
	archive := tar.NewWriter(w)
	for _, m := range append(members, tables...) {
		if err := m.write(archive); err != nil {
			return err
		}
	}
	return archive.Flush()
}

// tables returns the members in which other tools look for images.
func tables(index ocispec.Index, docker tarball.Manifest) (all []member, err error) {
	for _, t := range []struct {
		name  string
		value any
	}{
		{ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}},
		{ocispec.ImageIndexFile, index},
		{dockerManifest, docker},
	} {
		data, err := json.Marshal(t.value)
		if err != nil {
			return nil, err
		}
		all = append(all, member{t.name, data})
	}
	return all, nil
}

func (m member) write(archive *tar.Writer) error {
	if err := archive.WriteHeader(header(m.name, int64(len(m.data)))); err != nil {
		return err
	}
	_, err := archive.Write(m.data)
	return err
}
