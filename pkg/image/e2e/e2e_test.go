package e2e

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestImagesAreKnown checks that every image in the --list-images output
// of a supported version has a recipe.
func TestImagesAreKnown(t *testing.T) {
	for _, m := range catalog.Minors() {
		version := m.Patch
		listed := must.Read(t, filepath.Join("testdata", version))
		for ref := range strings.FieldsSeq(string(listed)) {
			img, known := findImage(ref)
			switch {
			case !known:
				t.Errorf("%s: no recipe for %s", version, ref)
			case img.cannot != "" && img.tests == "":
				t.Errorf("%s: %s cannot be built: which tests need it?", version, ref)
			case img.cannot == "" && !img.absent && !img.debian && img.like == "" && len(img.programs) == 0 &&
				img.more == nil:
				t.Errorf("%s: %s is empty", version, ref)
			}
		}
	}
}

// TestConformanceNeedsNoForeignImage checks names of conformance tests, and of
// other tests that do need an image without a recipe.
func TestConformanceNeedsNoForeignImage(t *testing.T) {
	conformance := []string{
		"[sig-storage] CSIInlineVolumes should run through the lifecycle of a CSIDriver [Conformance]",
		"[sig-storage] CSIStorageCapacity should support CSIStorageCapacities API operations [Conformance]",
		"[sig-storage] CSINodes CSI Conformance should run through the lifecycle of a csinode [Conformance]",
		"[sig-apps] ReplicaSet should serve a basic image on each replica with a public image  [Conformance]",
		"[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should perform rolling updates " +
			"and roll backs of template modifications [Conformance]",
	}
	for _, img := range testImages() {
		if used := img.users(conformance); img.cannot != "" && len(used) > 0 {
			t.Errorf("%s is not built, but %q need it", img.repo, used)
		}
	}
	for ref, test := range map[string]string{
		"gcr.io/k8s-authenticated-test/agnhost:2.6": "[sig-apps] ReplicaSet should serve a basic image on each " +
			"replica with a private image [Feature:X]",
		"registry.k8s.io/e2e-test-images/volume/nfs:1.6": "[sig-storage] In-tree Volumes [Driver: nfs] " +
			"[Testpattern: Inline-volume (default fs)] volumes should store data",
		"registry.k8s.io/sig-storage/csi-attacher:v4.8.0": "[sig-storage] CSI Volumes [Driver: csi-hostpath] " +
			"[Testpattern: Dynamic PV (default fs)] volumes should store data",
	} {
		img, _ := findImage(ref)
		if img.cannot == "" || !slices.Equal(img.users([]string{conformance[0], test}), []string{test}) {
			t.Errorf("%s is not said to be needed by %q", ref, test)
		}
	}
}

// TestWriteLayout writes two images that share a layer.
func TestWriteLayout(t *testing.T) {
	shared := static.NewLayer([]byte("shared"), types.OCIUncompressedLayer)
	var images []TestImage
	for _, ref := range []string{"registry.k8s.io/a:1", "registry.k8s.io/b:2"} {
		img, err := image.Assemble([]v1.Layer{shared, static.NewLayer([]byte(ref), types.OCIUncompressedLayer)},
			"amd64", v1.Config{Labels: map[string]string{"of": ref}})
		must.NoError(t, err)
		images = append(images, TestImage{Ref: ref, OCI: img})
	}
	var out bytes.Buffer
	must.NoError(t, WriteLayout(&out, images))
	all, err := rootfs.Read(&out, func(string) bool { return false })
	must.NoError(t, err)
	var index v1.IndexManifest
	if err := json.Unmarshal(all["index.json"].Data, &index); err != nil || len(index.Manifests) != 2 {
		t.Fatalf("%s: %v", all["index.json"].Data, err)
	}
	for i, entry := range index.Manifests {
		if entry.Annotations["io.containerd.image.name"] != images[i].Ref {
			t.Errorf("%s is named %v", images[i].Ref, entry.Annotations)
		}
		manifest, err := v1.ParseManifest(bytes.NewReader(all[blobName(entry.Digest)].Data))
		must.NoError(t, err)
		for _, blob := range append(manifest.Layers, manifest.Config) {
			if got := all[blobName(blob.Digest)].Data; image.HashOf(got) != blob.Digest {
				t.Errorf("%s: blob %s has %q", images[i].Ref, blob.Digest, got)
			}
		}
	}
	if blobs := len(all) - 2; blobs != 3+2+2 { // layers, configs, manifests
		t.Errorf("%d blobs: %v", blobs, all)
	}
}
