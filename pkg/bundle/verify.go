package bundle

import (
	"archive/tar"
	"bufio"
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
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Verify reads the whole bundle and returns the first error. It also reads the base, if there is one.
func (b *Bundle) Verify(ctx context.Context) error {
	if b.base != nil {
		if err := b.base.Verify(ctx); err != nil {
			return fmt.Errorf("its base: %w", err)
		}
	}
	v := verification{bundle: b, seen: map[string]bool{},
		progress: step.NewCounter(ctx, "verify "+path.Base(b.Path), b.size), ctx: ctx}
	if err := v.file(); err != nil {
		return fmt.Errorf("bundle %s: %w", b.Path, err)
	}
	for _, img := range b.Manifest.Images {
		for arch, p := range img.Platforms {
			if !holds(b, arch) {
				continue
			}
			if err := v.platform(p); err != nil {
				return fmt.Errorf("bundle %s: image %s for %s: %w", b.Path, img.Ref, arch, err)
			}
		}
	}
	return nil
}

// verification is the state of one pass over a file.
type verification struct {
	bundle   *Bundle
	ctx      context.Context
	progress *step.Counter
	seen     map[string]bool
}

// file reads all that any other tool would read, frame by frame.
func (v *verification) file() error {
	begin, end := v.bundle.Manifest.framesIn(v.bundle.size)
	if err := v.walk(io.NewSectionReader(v.bundle.file, 0, begin), v.headMember); err != nil {
		return err
	}
	for i := range v.bundle.Manifest.Frames {
		if isHole(v.bundle, i) {
			if err := v.hole(i); err != nil {
				return err
			}
			continue
		}
		if err := v.bundle.checkFrame(v.ctx, i); err != nil {
			return err
		}
		member := func(h *tar.Header, offset int64, r io.Reader) error { return v.blob(i, h, offset, r) }
		if err := v.walk(v.bundle.section(i), member); err != nil {
			return err
		}
	}
	if err := v.end(end); err != nil {
		return err
	}
	return v.complete()
}

// walk calls member for each member of a frame. The members must fill the frame: other tools would stop at an end
// mark, and read data behind the members.
func (v *verification) walk(compressed io.Reader, member func(h *tar.Header, offset int64, r io.Reader) error) error {
	decoder, err := compression.NewDecoder(WithContext(v.ctx, io.TeeReader(compressed, v.progress)), 2)
	if err != nil {
		return err
	}
	defer decoder.Close()
	var plain counter
	archive := tar.NewReader(io.TeeReader(decoder, &plain))
	for offset := int64(0); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) && int64(plain) != offset {
			err = errors.New("an end-of-archive mark precedes the end of the frame")
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

// hole requires that a frame that was left out is empty.
func (v *verification) hole(frame int) error {
	content := bufio.NewReader(io.TeeReader(WithContext(v.ctx, v.bundle.section(frame)), v.progress))
	for {
		one, err := content.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case one != 0:
			return fmt.Errorf("frame %d is cut short or damaged", frame)
		}
	}
}

type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

func (v *verification) end(start int64) error {
	decoder, err := compression.NewDecoder(io.NewSectionReader(v.bundle.file, start, v.bundle.size-start), 1)
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

func (v *verification) complete() error {
	for _, name := range []string{ocispec.ImageLayoutFile, ocispec.ImageIndexFile, dockerManifest} {
		if !v.seen[name] {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for d, blob := range v.bundle.Manifest.Blobs {
		if !blob.InBase && !isHole(v.bundle, blob.Frame) && !v.seen[blobName(d)] {
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
		return v.table(h, r)
	}
	return errors.New("it does not belong there")
}

func (v *verification) blob(frame int, h *tar.Header, offset int64, r io.Reader) error {
	d := digest.NewDigestFromEncoded(digest.SHA256, path.Base(h.Name))
	blob, ok := v.bundle.Manifest.Blobs[d]
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
		return errors.New("its content does not match its digest")
	}
	return nil
}

// table compares a table with its digest, and with the manifest: in a malicious bundle, both could name different
// images.
func (v *verification) table(h *tar.Header, r io.Reader) error {
	data, err := readMember(h, r, ManifestLimit)
	if err != nil {
		return err
	}
	if digest.FromBytes(data) != v.bundle.Manifest.Tables[h.Name] {
		return errors.New("its content does not match its digest")
	}
	switch h.Name {
	case ocispec.ImageIndexFile:
		return v.bundle.Manifest.verifyIndex(data)
	case dockerManifest:
		return v.bundle.Manifest.verifyDockerTable(data)
	}
	var layout ocispec.ImageLayout
	err = json.Unmarshal(data, &layout)
	if err == nil && layout.Version != ocispec.ImageLayoutVersion {
		err = fmt.Errorf("layout version %q", layout.Version)
	}
	return err
}

func (m Manifest) verifyIndex(data []byte) error {
	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return err
	}
	if len(index.Manifests) != len(m.Images) {
		return fmt.Errorf("it names %d images, not %d", len(index.Manifests), len(m.Images))
	}
	for i, img := range m.Images {
		if d := index.Manifests[i]; d.Digest != img.Index || d.Annotations[annotationName] != img.Ref {
			return fmt.Errorf("it names %s with %s where %s belongs", d.Annotations[annotationName], d.Digest, img.Ref)
		}
	}
	return nil
}

func (m Manifest) verifyDockerTable(data []byte) error {
	var table tarball.Manifest
	if err := json.Unmarshal(data, &table); err != nil {
		return err
	}
	if !reflect.DeepEqual(table, m.dockerManifest()) {
		return errors.New("it names other images than " + manifestName)
	}
	return nil
}

// platform compares the manifest of the bundle with that of the image.
func (v *verification) platform(p PlatformImage) error {
	if v.bundle.Manifest.Blobs[p.Manifest].InBase && v.bundle.base == nil {
		return nil
	}
	text, err := v.bundle.ReadText(p.Manifest)
	if err != nil {
		return err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
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
