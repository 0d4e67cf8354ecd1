package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// writeDockerManifest lists the images once more in the format of `docker save`.
// Docker without the containerd image store loads no other one
// (https://github.com/moby/moby/blob/v28.5.2/image/tarexport/load.go). It has no image
// for several architectures, so each has a tag of its own.
func writeDockerManifest(dir, version string, archs []string, images []v1.Image) error {
	var manifest tarball.Manifest
	for i, image := range images {
		one, err := dockerDescriptor(image)
		if err != nil {
			return err
		}
		one.RepoTags = []string{name + ":" + version + "-" + archs[i]}
		manifest = append(manifest, one)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), data, 0o644)
}

// dockerDescriptor names the files of an image in the layout.
func dockerDescriptor(image v1.Image) (one tarball.Descriptor, err error) {
	m, err := image.Manifest()
	if err != nil {
		return one, err
	}
	one.Config = blob(m.Config.Digest)
	for _, layer := range m.Layers {
		one.Layers = append(one.Layers, blob(layer.Digest))
	}
	return one, nil
}

func blob(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }
