package bundle

import (
	"archive/tar"
	"bytes"
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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Verify reads the whole bundle and returns the first error. It also reads the
// base, if there is one.
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
	if err := b.verifyFile(ctx); err != nil {
		return err
	}
	for _, img := range b.Images {
		for arch, p := range img.Platforms {
			if err := b.verifyPlatform(p); err != nil {
				return fmt.Errorf("image %s for %s: %w", img.Ref, arch, err)
			}
		}
	}
	return nil
}

// verifyFile reads all that any other tool would read, frame by frame.
func (b *Bundle) verifyFile(ctx context.Context) error {
	v := verification{Bundle: b, seen: map[string]bool{}, progress: step.NewCounter(ctx, "verify "+path.Base(b.Path), b.size), ctx: ctx}
	headEnd, endStart := b.size, b.size
	if n := len(b.Frames); n > 0 {
		headEnd, endStart = b.size-b.Frames[0].OffsetFromEnd, b.size-b.Frames[n-1].OffsetFromEnd+b.Frames[n-1].CompressedSize
	}
	if err := v.walk(io.NewSectionReader(b.file, 0, headEnd), v.headMember); err != nil {
		return err
	}
	for i := range b.Frames {
		if err := b.checkFrame(ctx, i); err != nil {
			return err
		}
		member := func(h *tar.Header, offset int64, r io.Reader) error { return b.verifyBlob(i, h, offset, r) }
		if err := v.walk(b.section(i), member); err != nil {
			return err
		}
	}
	if err := b.verifyEnd(endStart); err != nil {
		return err
	}
	return b.complete(v.seen)
}

// verification is the state of one pass over a file.
type verification struct {
	*Bundle
	ctx      context.Context
	progress *step.Counter
	seen     map[string]bool
}

// walk calls member for each member of a frame. The members must fill the frame:
// other tools would stop at an end mark, and read data behind the members.
func (v *verification) walk(compressed io.Reader, member func(h *tar.Header, offset int64, r io.Reader) error) error {
	decoder, err := newDecoder(withContext(v.ctx, io.TeeReader(compressed, v.progress)), 2)
	if err != nil {
		return err
	}
	defer decoder.Close()
	var plain counter
	archive := tar.NewReader(io.TeeReader(decoder, &plain))
	for offset := int64(0); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) && int64(plain) != offset {
			err = errors.New("an end mark is in its midst")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is cut short or damaged: %w", err)
		}
		if v.seen[h.Name] {
			return fmt.Errorf("member %q is there twice", h.Name)
		}
		v.seen[h.Name] = true
		if err = plainMember(h); err == nil {
			err = member(h, offset, archive)
		}
		if err != nil {
			return fmt.Errorf("member %q: %w", h.Name, err)
		}
		offset += memberSize(h.Size)
	}
}

func (b *Bundle) verifyEnd(start int64) error {
	decoder, err := newDecoder(io.NewSectionReader(b.file, start, b.size-start), 1)
	if err != nil {
		return err
	}
	defer decoder.Close()
	end, err := io.ReadAll(io.LimitReader(decoder, 4*tarBlock))
	if err != nil || !bytes.Equal(end, make([]byte, 2*tarBlock)) {
		return errors.New("it is cut short or damaged: it does not end as it should")
	}
	return nil
}

func (b *Bundle) complete(seen map[string]bool) error {
	for _, name := range []string{ocispec.ImageLayoutFile, ocispec.ImageIndexFile, dockerManifest} {
		if !seen[name] {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for d, blob := range b.Blobs {
		if !blob.InBase && !seen[blobName(d)] {
			return fmt.Errorf("%s is missing", blobName(d))
		}
	}
	return nil
}

func plainMember(h *tar.Header) error {
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
	return nil
}

func (v *verification) headMember(h *tar.Header, offset int64, r io.Reader) error {
	switch h.Name {
	case manifestName, signatureName:
		return nil // Open has read it strictly
	case dockerManifest, ocispec.ImageLayoutFile, ocispec.ImageIndexFile:
		return v.verifyTable(h, r)
	}
	return errors.New("it does not belong there")
}

func (b *Bundle) verifyBlob(frame int, h *tar.Header, offset int64, r io.Reader) error {
	d := digest.NewDigestFromEncoded(digest.SHA256, path.Base(h.Name))
	blob, ok := b.Blobs[d]
	switch {
	case !ok || h.Name != blobName(d) || blob.InBase || blob.Frame != frame || blob.Offset != offset:
		return errors.New("it does not belong there")
	case h.Size != blob.Size:
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

// verifyTable compares a table with its digest, and with the manifest: in a
// malicious bundle, both could name different images.
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
	case dockerManifest:
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
	for i, img := range b.Images {
		if m := index.Manifests[i]; m.Digest != img.Index || m.Annotations[annotationName] != img.Ref {
			return fmt.Errorf("it names %s with %s where %s belongs", m.Annotations[annotationName], m.Digest, img.Ref)
		}
	}
	return nil
}

func (b *Bundle) verifyDockerTable(data []byte) error {
	var table []dockerImage
	if err := json.Unmarshal(data, &table); err != nil {
		return err
	}
	if !reflect.DeepEqual(table, b.dockerManifest()) {
		return errors.New("it names other images than " + manifestName)
	}
	return nil
}

// verifyPlatform compares the manifest of the bundle with that of the image.
func (b *Bundle) verifyPlatform(p PlatformImage) error {
	if b.Blobs[p.Manifest].InBase && b.base == nil {
		return nil
	}
	var text strings.Builder
	if b.Blobs[p.Manifest].Size > manifestLimit {
		return errors.New("its manifest is too large")
	}
	if err := b.copyBlob(&text, p.Manifest); err != nil {
		return err
	}
	manifest, err := v1.ParseManifest(strings.NewReader(text.String()))
	if err != nil {
		return err
	}
	if manifest.Config.Digest.String() != p.Config.String() || len(manifest.Layers) != len(p.Layers) {
		return errors.New("its manifest names other parts")
	}
	for i, l := range manifest.Layers {
		if l.Digest.String() != p.Layers[i].String() {
			return fmt.Errorf("its manifest names another layer %d", i+1)
		}
	}
	return nil
}
