package e2e

import (
	"archive/tar"
	"encoding/json"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// WriteLayout writes images as a tar of an OCI image layout, which containerd
// can import. It writes each shared blob once.
func WriteLayout(w io.Writer, images []TestImage) error {
	l := layoutWriter{archive: tar.NewWriter(w), written: map[string]bool{}}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, img := range images {
		entry, err := l.image(img)
		if err != nil {
			return err
		}
		index.Manifests = append(index.Manifests, entry)
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if err := l.file("index.json", static.NewLayer(data, "")); err != nil {
		return err
	}
	if err := l.file("oci-layout", static.NewLayer([]byte(`{"imageLayoutVersion":"1.0.0"}`), "")); err != nil {
		return err
	}
	return l.archive.Close()
}

type layoutWriter struct {
	archive *tar.Writer
	written map[string]bool // by file name
}

// image writes the blobs of an image and returns its entry in the index.
func (l *layoutWriter) image(img TestImage) (v1.Descriptor, error) {
	entry := v1.Descriptor{
		MediaType: types.OCIManifestSchema1, Annotations: map[string]string{"io.containerd.image.name": img.Ref},
	}
	blobs, err := blobsOf(img.OCI)
	if err != nil {
		return entry, err
	}
	manifest, err := img.OCI.RawManifest()
	if err != nil {
		return entry, err
	}
	for _, blob := range append(blobs, static.NewLayer(manifest, entry.MediaType)) {
		digest, err := blob.Digest()
		if err != nil {
			return entry, err
		}
		if err := l.file(blobName(digest), blob); err != nil {
			return entry, err
		}
	}
	entry.Digest, entry.Size = image.HashOf(manifest), int64(len(manifest))
	return entry, nil
}

func blobsOf(img v1.Image) ([]v1.Layer, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	config, err := partial.ConfigLayer(img)
	return append(layers, config), err
}

// file writes a file, unless the archive has it already.
func (l *layoutWriter) file(name string, content v1.Layer) error {
	if l.written[name] {
		return nil
	}
	l.written[name] = true
	size, err := content.Size()
	if err != nil {
		return err
	}
	stream, err := content.Compressed()
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := l.archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err = io.Copy(l.archive, stream)
	return err
}

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
