package e2e

import (
	"archive/tar"
	"encoding/json"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// WriteLayout writes images as a tar of an OCI image layout, which containerd
// can import. It writes each shared blob once.
func WriteLayout(w io.Writer, images []Image) error {
	l := layoutWriter{archive: tar.NewWriter(w), written: map[v1.Hash]bool{}}
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
	if err := l.file("index.json", data); err != nil {
		return err
	}
	if err := l.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return l.archive.Close()
}

type layoutWriter struct {
	archive *tar.Writer
	written map[v1.Hash]bool
}

// image writes the blobs of an image and returns its entry in the index.
func (l *layoutWriter) image(img Image) (v1.Descriptor, error) {
	entry := v1.Descriptor{MediaType: types.OCIManifestSchema1, Annotations: map[string]string{"io.containerd.image.name": img.Ref}}
	layers, err := img.OCI.Layers()
	if err != nil {
		return entry, err
	}
	for _, layer := range layers {
		if err := l.layer(layer); err != nil {
			return entry, err
		}
	}
	config, err := img.OCI.RawConfigFile()
	if err != nil {
		return entry, err
	}
	if err := l.blob(config); err != nil {
		return entry, err
	}
	manifest, err := img.OCI.RawManifest()
	if err != nil {
		return entry, err
	}
	entry.Digest, entry.Size = image.HashOf(manifest), int64(len(manifest))
	return entry, l.blob(manifest)
}

func (l *layoutWriter) layer(layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil || l.written[digest] {
		return err
	}
	l.written[digest] = true
	size, err := layer.Size()
	if err != nil {
		return err
	}
	stream, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := l.archive.WriteHeader(&tar.Header{Name: blobName(digest), Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err = io.Copy(l.archive, stream)
	return err
}

func (l *layoutWriter) blob(data []byte) error {
	digest := image.HashOf(data)
	if l.written[digest] {
		return nil
	}
	l.written[digest] = true
	return l.file(blobName(digest), data)
}

func (l *layoutWriter) file(name string, data []byte) error {
	if err := l.archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := l.archive.Write(data)
	return err
}

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
