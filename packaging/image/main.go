// Command image writes an OCI image layout with one image of the program for each
// architecture: the static program and nothing else.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/packaging/epoch"
)

// name is the repository of the image; its tag is the version.
const name = "kube-bootstrap.dev/kube-bootstrap"

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr,
			"usage: image LAYOUT PROGRAMS VERSION ARCH...   (PROGRAMS-ARCH is the program of an architecture)")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir, programs, version string, archs []string) error {
	var images []v1.Image
	for _, arch := range archs {
		image, err := imageOf(programs+"-"+arch, version, platform(arch))
		if err != nil {
			return err
		}
		images = append(images, image)
	}
	return errors.Join(writeLayout(dir, version, archs, images), writeDockerManifest(dir, version, archs, images))
}

func writeLayout(dir, version string, archs []string, images []v1.Image) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, image := range images {
		p := platform(archs[i])
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p}})
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          name + ":" + version,
		"org.opencontainers.image.ref.name": version,
	}))
}

// platform is what OCI calls an architecture of Go.
func platform(arch string) v1.Platform {
	p := v1.Platform{OS: "linux", Architecture: arch}
	if arch == "arm" {
		p.Variant = "v7"
	}
	return p
}

func imageOf(path, version string, p v1.Platform) (v1.Image, error) {
	layer, err := layerOf(path)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant, config.Created = p.OS, p.Architecture, p.Variant,
		v1.Time{Time: epoch.Made()}
	config.Config.Entrypoint = []string{"/kube-bootstrap"}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "kube-bootstrap",
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	return mutate.ConfigFile(image, config)
}

// layerOf returns a layer that holds the program alone.
func layerOf(path string) (v1.Layer, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "kube-bootstrap", Mode: 0o755, Size: int64(len(program)),
		ModTime: epoch.Made()}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
}
