package offline

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Verify reads a whole bundle and returns the first thing that is wrong.
func Verify(ctx context.Context, path string) error {
	b, err := Open(path)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.verify(ctx); err != nil {
		return fmt.Errorf("bundle %s: %w", path, err)
	}
	return nil
}

func (b *Bundle) verify(ctx context.Context) error {
	seen, err := b.verifyStream(ctx)
	if err != nil {
		return err
	}
	for d := range b.Blobs {
		if !seen[blobName(d)] {
			return fmt.Errorf("%s is missing", blobName(d))
		}
		decoder, _, err := b.openBlob(d)
		if err != nil {
			return fmt.Errorf("blob %s: %w", d, err)
		}
		decoder.Close()
	}
	for _, e := range b.Images {
		for arch, variant := range e.Variants {
			if err := b.verifyVariant(variant); err != nil {
				return fmt.Errorf("image %s for %s: %w", e.Ref, arch, err)
			}
		}
	}
	return nil
}

// verifyStream reads the bundle as any other tool would, from its beginning.
func (b *Bundle) verifyStream(ctx context.Context) (map[string]bool, error) {
	counted := newProgress(ctx, "verify "+path.Base(b.Path), b.size)
	decoder, err := newDecoder(withContext(ctx, io.TeeReader(io.NewSectionReader(b.file, 0, b.size), counted)))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	seen := map[string]bool{}
	archive := tar.NewReader(decoder)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return seen, complete(seen)
		}
		if err != nil {
			return nil, fmt.Errorf("it is cut short or damaged: %w", err)
		}
		if seen[h.Name] {
			return nil, fmt.Errorf("member %q is there twice", h.Name)
		}
		seen[h.Name] = true
		if err := b.verifyMember(h, archive); err != nil {
			return nil, fmt.Errorf("member %q: %w", h.Name, err)
		}
	}
}

func complete(seen map[string]bool) error {
	for _, name := range []string{ocispec.ImageLayoutFile, ocispec.ImageIndexFile} {
		if !seen[name] {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}

func (b *Bundle) verifyMember(h *tar.Header, r io.Reader) error {
	switch {
	case path.IsAbs(h.Name):
		return errors.New("its path is absolute")
	case strings.Contains("/"+h.Name+"/", "/../"):
		return errors.New("its path leaves the bundle")
	case h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink:
		return errors.New("it is a link")
	case h.Typeflag != tar.TypeReg:
		return errors.New("it is not a plain file")
	}
	switch h.Name {
	case manifestName:
		return nil // read strictly by Open
	case dockerTable:
		return b.verifyDockerTable(h, r)
	case ocispec.ImageLayoutFile, ocispec.ImageIndexFile:
		return b.verifyLayout(h, r)
	}
	d := digest.NewDigestFromEncoded(digest.SHA256, path.Base(h.Name))
	blob, ok := b.Blobs[d]
	if !ok || h.Name != blobName(d) {
		return errors.New("it does not belong in a bundle")
	}
	if h.Size != blob.Size {
		return fmt.Errorf("it has %d bytes, not %d", h.Size, blob.Size)
	}
	check := d.Verifier()
	if _, err := io.Copy(check, r); err != nil {
		return fmt.Errorf("it is cut short or damaged: %w", err)
	}
	if !check.Verified() {
		return errors.New("its content is not what its digest says")
	}
	return nil
}

func (b *Bundle) verifyLayout(h *tar.Header, r io.Reader) error {
	if h.Size > manifestLimit {
		return fmt.Errorf("it has %d bytes, more than the %d allowed", h.Size, manifestLimit)
	}
	if h.Name == ocispec.ImageLayoutFile {
		var layout ocispec.ImageLayout
		err := json.NewDecoder(r).Decode(&layout)
		if err == nil && layout.Version != ocispec.ImageLayoutVersion {
			err = fmt.Errorf("layout version %q", layout.Version)
		}
		return err
	}
	var index ocispec.Index
	if err := json.NewDecoder(r).Decode(&index); err != nil {
		return err
	}
	if len(index.Manifests) != len(b.Images) {
		return fmt.Errorf("it names %d images, not %d", len(index.Manifests), len(b.Images))
	}
	for i, e := range b.Images {
		if m := index.Manifests[i]; m.Digest != e.Index || m.Annotations[annotationName] != e.Ref {
			return fmt.Errorf("it names %s with %s where %s belongs", m.Annotations[annotationName], m.Digest, e.Ref)
		}
	}
	return nil
}

func (b *Bundle) verifyDockerTable(h *tar.Header, r io.Reader) error {
	if h.Size > manifestLimit {
		return fmt.Errorf("it has %d bytes, more than the %d allowed", h.Size, manifestLimit)
	}
	var table, want []dockerImage
	if err := json.NewDecoder(r).Decode(&table); err != nil {
		return err
	}
	for _, e := range b.Images {
		want = append(want, e.docker(b.Archs()[0]))
	}
	if !reflect.DeepEqual(table, want) {
		return errors.New("it names other images than " + manifestName)
	}
	return nil
}

// verifyVariant compares our manifest with the image's own.
func (b *Bundle) verifyVariant(variant Variant) error {
	var text strings.Builder
	if b.Blobs[variant.Manifest].Size > manifestLimit {
		return errors.New("its manifest is too large")
	}
	if err := b.readBlob(&text, variant.Manifest); err != nil {
		return err
	}
	manifest, err := v1.ParseManifest(strings.NewReader(text.String()))
	if err != nil {
		return err
	}
	if manifest.Config.Digest.String() != variant.Config.String() || len(manifest.Layers) != len(variant.Layers) {
		return errors.New("its manifest names other parts")
	}
	for i, l := range manifest.Layers {
		if l.Digest.String() != variant.Layers[i].String() {
			return fmt.Errorf("its manifest names another layer %d", i+1)
		}
	}
	return nil
}
