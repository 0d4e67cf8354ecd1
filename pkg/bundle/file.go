package bundle

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"slices"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// CopyFile writes a file of an image to w, and follows symbolic links to other files. The name is relative to the root
// of the image. It verifies the digest of the layer after it has written the file, so the caller must discard the file
// if there is an error.
func CopyFile(b *Bundle, w io.Writer, ref, arch, name string) error {
	const mostLinks = 8
	found, err := b.Find(ref, arch)
	if err != nil {
		return err
	}
	for range mostLinks {
		target, err := copyEntry(b, w, found.Platforms[arch].Layers, name)
		if err != nil || target == "" {
			return step.Wrap(err, "image %s", ref)
		}
		name = target
	}
	return fmt.Errorf("bundle %s: image %s has too many links to %s", b.Path, ref, name)
}

// copyEntry writes a file from the uppermost layer that has it. If that is a symbolic link, it returns the target of
// the link.
func copyEntry(b *Bundle, w io.Writer, layers []digest.Digest, name string) (target string, err error) {
	for _, layer := range slices.Backward(layers) {
		exists, target, err := copyFromLayer(b, w, layer, name)
		if err != nil || exists {
			return target, err
		}
	}
	return "", fmt.Errorf("bundle %s has no file %s", b.Path, name)
}

func copyFromLayer(b *Bundle, w io.Writer, layer digest.Digest, name string) (exists bool, target string, err error) {
	content := Pipe(func(w io.Writer) error { return b.copyBlob(w, layer) })
	defer content.Close()
	err = rootfs.EachEntry(content, func(entry string, h *tar.Header, file io.Reader) (err error) {
		switch {
		case entry != name:
		case h.Typeflag == tar.TypeReg:
			exists = true
			_, err = io.Copy(w, file)
		case h.Typeflag == tar.TypeSymlink:
			exists, target = true, linkTarget(name, h.Linkname)
		}
		return err
	})
	if err == nil {
		_, err = io.Copy(io.Discard, content) // to the end, where copyBlob verifies the digest
	}
	return exists, target, err
}

func linkTarget(link, to string) string {
	if !path.IsAbs(to) {
		to = path.Join("/", path.Dir(link), to)
	}
	return path.Clean(to)[1:]
}
