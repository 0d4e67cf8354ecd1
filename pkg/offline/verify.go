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

// Verify reads a whole bundle and returns the first thing that is wrong. What
// lies in a base is read where the base is given.
func (b *Bundle) Verify(ctx context.Context) error {
	if b.base != nil {
		if err := b.base.Verify(ctx); err != nil {
			return fmt.Errorf("its base: %w", err)
		}
	}
	if err := b.verify(ctx); err != nil {
		return fmt.Errorf("bundle %s: %w", b.Path, err)
	}
	return nil
}

func (b *Bundle) verify(ctx context.Context) error {
	seen, err := b.verifyStream(ctx)
	if err != nil {
		return err
	}
	for d, blob := range b.Blobs {
		if blob.InBase && b.base == nil {
			continue
		}
		if !blob.InBase && !seen[blobName(d)] {
			return fmt.Errorf("%s is missing", blobName(d))
		}
		if err := b.verifyPlace(ctx, d); err != nil {
			return fmt.Errorf("blob %s: %w", d, err)
		}
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

// verifyPlace makes sure that a blob lies where the manifest says, and nothing
// else with it.
func (b *Bundle) verifyPlace(ctx context.Context, d digest.Digest) error {
	packed, blob, err := b.frame(d)
	if err != nil {
		return err
	}
	if err := blob.checkFrame(withContext(ctx, packed)); err != nil {
		return err
	}
	decoder, _, err := b.openBlob(d)
	if err == nil {
		decoder.Close()
	}
	return err
}

// verifyStream reads the bundle as any other tool would, from its beginning.
func (b *Bundle) verifyStream(ctx context.Context) (map[string]bool, error) {
	counted := newProgress(ctx, "verify "+path.Base(b.Path), b.size)
	decoder, err := newDecoder(withContext(ctx, io.TeeReader(io.NewSectionReader(b.file, 0, b.size), counted)), 2)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	seen := map[string]bool{}
	archive := tar.NewReader(decoder)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return seen, b.complete(seen)
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

func (b *Bundle) complete(seen map[string]bool) error {
	for _, name := range []string{ocispec.ImageLayoutFile, ocispec.ImageIndexFile, dockerTable} {
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
	case manifestName, signatureName:
		return nil // read strictly by Open
	case dockerTable, ocispec.ImageLayoutFile, ocispec.ImageIndexFile:
		return b.verifyTable(h, r)
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

// verifyTable compares a table with its digest, and, as who made the bundle
// may have meant harm, with the manifest: both must name the same images.
func (b *Bundle) verifyTable(h *tar.Header, r io.Reader) error {
	data, err := readMember(h, r, manifestLimit)
	if err != nil {
		return err
	}
	if digest.FromBytes(data) != b.Tables[h.Name] {
		return errors.New("its content is not what its digest says")
	}
	switch h.Name {
	case ocispec.ImageIndexFile:
		return b.verifyIndex(data)
	case dockerTable:
		return b.verifyDockerTable(data)
	}
	var layout ocispec.ImageLayout
	err = json.Unmarshal(data, &layout)
	if err == nil && layout.Version != ocispec.ImageLayoutVersion {
		err = fmt.Errorf("layout version %q", layout.Version)
	}
	return err
}

func (b *Bundle) verifyIndex(data []byte) error {
	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
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

func (b *Bundle) verifyDockerTable(data []byte) error {
	var table []dockerImage
	if err := json.Unmarshal(data, &table); err != nil {
		return err
	}
	if !reflect.DeepEqual(table, b.dockerTable()) {
		return errors.New("it names other images than " + manifestName)
	}
	return nil
}

// verifyVariant compares our manifest with the image's own.
func (b *Bundle) verifyVariant(variant Variant) error {
	if b.Blobs[variant.Manifest].InBase && b.base == nil {
		return nil
	}
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
