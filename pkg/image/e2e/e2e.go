// Package e2e builds Kubernetes' own end-to-end tests, and the images that they use.
package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/userland"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Programs are the end-to-end tests of a Kubernetes version.
type Programs struct {
	Test   string // path of the program that contains all tests
	Ginkgo string // path of the program that runs it in parallel
}

// TestEvent is one event that the test program writes when a test starts or ends.
// suiteevents_test.go.tmpl, in the recipes of pkg/image, writes it.
type TestEvent struct {
	Kind    string  `json:"kind"` // "start" or "end"
	Test    string  `json:"test"`
	State   string  `json:"state"` // "passed", "skipped"; every other state is a failure
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"` // of a failure
	At      string  `json:"at"`      // file:line of a failure
}

// EventsVariable is the environment variable with the path of the event file.
const EventsVariable = "KUBE_BOOTSTRAP_TEST_EVENTS"

// Compile compiles the tests of a version, or takes them from the cache.
func Compile(ctx context.Context, b *image.Builder, v image.Versions, arch string) (Programs, error) {
	part, err := b.Compile(ctx, v.Recipe("suite"), arch)
	return Programs{Test: filepath.Join(part.Dir, "e2e.test"), Ginkgo: filepath.Join(part.Dir, "ginkgo")}, err
}

// Tests lists the tests that the program would run with these arguments.
func (p Programs) Tests(ctx context.Context, args ...string) ([]string, error) {
	file, err := os.CreateTemp("", "kube-bootstrap-tests-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	command := host.Command{
		Args: append([]string{p.Test, "--ginkgo.dry-run", "--ginkgo.no-color"}, args...),
		Env:  []string{EventsVariable + "=" + file.Name()},
	}
	if _, err := command.Run(ctx); err != nil {
		return nil, fmt.Errorf("list the tests: %w", err)
	}
	var names []string
	for decoder := json.NewDecoder(file); decoder.More(); {
		var e TestEvent
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("list the tests: %w", err)
		}
		if e.Kind == "start" {
			names = append(names, e.Test)
		}
	}
	return names, nil
}

// TestImage is an image that tests use, with the name by which they refer to it.
type TestImage struct {
	Ref string
	OCI v1.Image
}

// Unbuilt is an image that tests use and that cannot be built.
type Unbuilt struct {
	Ref    string
	Reason string
	Tests  []string // selected tests that need the image
}

// Images builds the images that tests use, also if some of them cannot be built.
func (p Programs) Images(
	ctx context.Context, b *image.Builder, v image.Versions, tests []string, arch string,
) ([]TestImage, []Unbuilt, error) {
	out, err := host.Run(ctx, p.Test, "--list-images")
	if err != nil {
		return nil, nil, err
	}
	var built []TestImage
	var unbuilt []Unbuilt
	refs := strings.Fields(out)
	slices.Sort(refs)
	for _, ref := range slices.Compact(refs) {
		recipe, known := findImage(ref)
		users := recipe.users(tests)
		switch {
		case !known:
			unbuilt = append(unbuilt, Unbuilt{Ref: ref, Reason: "there is no recipe for it"})
			continue
		case recipe.absent || len(users) == 0:
			continue
		case recipe.cannot != "":
			unbuilt = append(unbuilt, Unbuilt{Ref: ref, Reason: recipe.cannot, Tests: users})
			continue
		}
		img, err := build{b, v, arch}.image(ctx, recipe, ref)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			unbuilt = append(unbuilt, Unbuilt{Ref: ref, Reason: err.Error(), Tests: users})
			continue
		}
		built = append(built, TestImage{Ref: ref, OCI: img})
	}
	return built, unbuilt, nil
}

type build struct {
	builder  *image.Builder
	versions image.Versions
	arch     string
}

func (b build) image(ctx context.Context, img testImage, ref string) (v1.Image, error) {
	step.Report(ctx, "build "+ref, 0, 0)
	_, tag, _ := strings.Cut(ref[strings.LastIndex(ref, "/"):], ":")
	layers, err := b.layers(ctx, img, tag)
	if err != nil {
		return nil, err
	}
	return image.Assemble(layers, b.arch, img.config)
}

// layers returns the layers of the base image, the userland and img's own files.
func (b build) layers(ctx context.Context, img testImage, tag string) (layers []v1.Layer, err error) {
	if img.like != "" {
		base, _ := findImage(img.like)
		if layers, err = b.layers(ctx, base, tag); err != nil {
			return nil, err
		}
	}
	if img.debian {
		layer, err := userland.Debian(ctx, b.builder.Cache, "suite-userland", b.arch, testPackages)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	own, err := b.content(ctx, img, tag)
	if err != nil {
		return nil, err
	}
	layer, err := rootfs.Layer(ctx, b.builder.Cache,
		"layer-suite-"+filepath.Base(img.repo)+"-"+b.arch+"-"+cache.Key(own), own)
	return append(layers, layer), err
}

func (b build) content(ctx context.Context, img testImage, tag string) (rootfs.Content, error) {
	own := rootfs.Content{
		Files: map[string]string{}, Links: img.links, Texts: map[string][]byte{}, Dirs: img.dirs, Modes: img.modes,
	}
	for name, text := range img.texts {
		own.Texts[name] = []byte(text)
	}
	for at, program := range img.programs {
		recipe := program(b.versions, tag)
		part, err := b.builder.Compile(ctx, recipe, b.arch)
		if err != nil {
			return own, err
		}
		own.Files[at] = filepath.Join(part.Dir, recipe.Program(recipe.Packages[0]))
	}
	if len(img.sources) > 0 {
		module, err := image.Download(ctx, "k8s.io/kubernetes@"+b.versions.Kubernetes)
		if err != nil {
			return own, err
		}
		for at, source := range img.sources {
			if own.Texts[at], err = os.ReadFile(filepath.Join(module.Dir, "test/images", source)); err != nil {
				return own, err
			}
		}
	}
	if img.more == nil {
		return own, nil
	}
	return own, img.more(ctx, b, &own)
}

// pauseStore adds the data for agnhost's registry: the pause image under the
// tag "testing", as an index with one entry.
func pauseStore(ctx context.Context, b build, own *rootfs.Content) error {
	pause, err := b.builder.Build(ctx, b.versions, image.Image{Name: "pause", Ref: image.Ref(b.versions, "pause")},
		b.arch)
	if err != nil {
		return err
	}
	manifest, err := pause.OCI.RawManifest()
	if err != nil {
		return err
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: "application/vnd.oci.image.index.v1+json",
		Manifests: []v1.Descriptor{{
			MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: image.HashOf(manifest),
			Size: int64(len(manifest)), Platform: &v1.Platform{OS: "linux", Architecture: b.arch}}}})
	if err != nil {
		return err
	}
	const dir = "var/registry/pause/"
	own.Texts[dir+"manifests/testing"] = []byte(image.HashOf(index).String() + "\n")
	blob(own, dir+"manifests/", index)
	blob(own, dir+"manifests/", manifest)
	blobs, err := blobsOf(pause.OCI)
	for _, one := range blobs {
		data, readErr := blobData(one)
		err = errors.Join(err, readErr)
		blob(own, dir+"blobs/", data)
	}
	return err
}

// blob adds data under both names that the registry in agnhost may use: its
// digest (up to Kubernetes 1.35), and a path made from its digest.
func blob(c *rootfs.Content, dir string, data []byte) {
	h := image.HashOf(data)
	c.Texts[dir+h.String()] = data
	c.Texts[dir+h.Algorithm+"/"+h.Hex[:2]+"/"+h.Hex+"/data"] = data
}

func blobData(blob v1.Layer) ([]byte, error) {
	stream, err := blob.Compressed()
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return io.ReadAll(stream)
}
