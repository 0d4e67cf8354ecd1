package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Suite is the end-to-end tests of a Kubernetes version, made from its source.
type Suite struct {
	Test   string // path of the program that contains all tests
	Ginkgo string // path of the program that runs it in parallel
}

// SuiteImage is an image that tests use, with the name by which they refer to
// it.
type SuiteImage struct {
	Ref string
	OCI v1.Image
}

// Unbuilt is an image that tests use and that cannot be built.
type Unbuilt struct {
	Ref    string
	Reason string
	Tests  []string // selected tests that need the image
}

// TestEvent is one event that the test program writes when a test starts or
// ends. recipes/suiteevents_test.go.tmpl writes it.
type TestEvent struct {
	Kind    string  `json:"kind"` // "start" or "end"
	Test    string  `json:"test"`
	State   string  `json:"state"` // "passed", "skipped"; every other state is a failure
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"` // of a failure
	At      string  `json:"at"`      // file:line of a failure
}

// TestEvents is the environment variable with the path of the event file.
const TestEvents = "KUBE_BOOTSTRAP_TEST_EVENTS"

// Suite compiles the tests of a version, or takes them from the cache.
func (b *Builder) Suite(ctx context.Context, v Versions, arch string) (Suite, error) {
	part, err := b.compile(ctx, v, "suite", arch)
	return Suite{Test: filepath.Join(part.Dir, "e2e.test"), Ginkgo: filepath.Join(part.Dir, "ginkgo")}, err
}

// Tests lists the tests that the program would run with these arguments.
func (s Suite) Tests(ctx context.Context, args ...string) ([]string, error) {
	file, err := os.CreateTemp("", "kube-bootstrap-tests-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	command := host.Command{Args: append([]string{s.Test, "--ginkgo.dry-run", "--ginkgo.no-color"}, args...), Env: []string{TestEvents + "=" + file.Name()}}
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

// SuiteImages builds the images that tests use, or takes them from the cache.
// If an image cannot be built, the others are still built.
func (b *Builder) SuiteImages(ctx context.Context, v Versions, s Suite, tests []string, arch string) ([]SuiteImage, []Unbuilt, error) {
	out, err := host.Run(ctx, s.Test, "--list-images")
	if err != nil {
		return nil, nil, err
	}
	var built []SuiteImage
	var unbuilt []Unbuilt
	refs := strings.Fields(out)
	slices.Sort(refs)
	for _, ref := range slices.Compact(refs) {
		recipe, known := findSuiteImage(ref)
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
		img, err := b.suiteImage(ctx, v, recipe, ref, arch)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			unbuilt = append(unbuilt, Unbuilt{Ref: ref, Reason: err.Error(), Tests: users})
			continue
		}
		built = append(built, SuiteImage{Ref: ref, OCI: img})
	}
	return built, unbuilt, nil
}

func (b *Builder) suiteImage(ctx context.Context, v Versions, img suiteImage, ref, arch string) (v1.Image, error) {
	step.Report(ctx, "build "+ref, 0, 0)
	_, tag, _ := strings.Cut(ref[strings.LastIndex(ref, "/"):], ":")
	layers, err := b.suiteLayers(ctx, v, img, tag, arch)
	if err != nil {
		return nil, err
	}
	config := shape{}.config(img.repo, arch)
	config.Config = img.config
	config.Config.Env = []string{imagePath}
	return assemble(layers, config)
}

// suiteLayers returns the layers of the image that img is based on, then those
// of the userland and of img's own files.
func (b *Builder) suiteLayers(ctx context.Context, v Versions, img suiteImage, tag, arch string) (layers []v1.Layer, err error) {
	if img.like != "" {
		base, _ := findSuiteImage(img.like)
		if layers, err = b.suiteLayers(ctx, v, base, tag, arch); err != nil {
			return nil, err
		}
	}
	if img.debian {
		layer, err := b.suiteUserland(ctx, arch)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	own, err := b.suiteContent(ctx, v, img, tag, arch)
	if err != nil {
		return nil, err
	}
	layer, err := b.layer(ctx, "layer-suite-"+filepath.Base(img.repo)+"-"+arch+"-"+key(own), own)
	return append(layers, layer), err
}

// suiteContent compiles the programs of an image and collects its other files.
func (b *Builder) suiteContent(ctx context.Context, v Versions, img suiteImage, tag, arch string) (content, error) {
	own := content{Files: map[string]string{}, Links: img.links, Texts: map[string][]byte{}, Dirs: img.dirs, Modes: img.modes}
	for name, text := range img.texts {
		own.Texts[name] = []byte(text)
	}
	for at, program := range img.programs {
		part, err := b.compileRecipe(ctx, program(v, tag), arch)
		if err != nil {
			return own, err
		}
		own.Files[at] = filepath.Join(part.Dir, program(v, tag).program(program(v, tag).Packages[0]))
	}
	if len(img.sources) > 0 {
		module, err := download(ctx, "k8s.io/kubernetes@"+v.Kubernetes)
		if err != nil {
			return own, err
		}
		for at, source := range img.sources {
			if own.Texts[at], err = os.ReadFile(filepath.Join(module.Dir, "test/images", source)); err != nil {
				return own, err
			}
		}
	}
	for _, more := range img.more {
		if err := more(ctx, b, v, arch, &own); err != nil {
			return own, err
		}
	}
	return own, nil
}

func (b *Builder) suiteUserland(ctx context.Context, arch string) (v1.Layer, error) {
	mirror, err := host.DebianMirror()
	if err != nil {
		return nil, err
	}
	dir, err := Cached(ctx, b.Cache, "suite-userland-"+arch+"-"+key(userlandRecipe, testPackages), func(dir string) error {
		step.Report(ctx, "fetch the userland of the images", 0, 0)
		raw := filepath.Join(dir, "raw.tar")
		defer os.Remove(raw)
		if err := debootstrap(ctx, arch, mirror, raw, testPackages); err != nil {
			return err
		}
		return tidyUserland(raw, filepath.Join(dir, "userland.tar"))
	})
	if err != nil {
		return nil, err
	}
	return openLayer(filepath.Join(dir, "userland.tar"))
}

// pauseStore adds the data for agnhost's registry: the pause image under the
// tag "testing", as an index with one entry.
func pauseStore(ctx context.Context, b *Builder, v Versions, arch string, own *content) error {
	pause, err := b.Build(ctx, v, Image{Name: "pause", Ref: Ref(v, "pause")}, arch)
	if err != nil {
		return err
	}
	manifest, err := pause.OCI.RawManifest()
	if err != nil {
		return err
	}
	config, err := pause.OCI.RawConfigFile()
	if err != nil {
		return err
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: "application/vnd.oci.image.index.v1+json", Manifests: []v1.Descriptor{{
		MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: hashOf(manifest), Size: int64(len(manifest)), Platform: &v1.Platform{OS: "linux", Architecture: arch}}}})
	if err != nil {
		return err
	}
	const dir = "var/registry/pause/"
	own.Texts[dir+"manifests/testing"] = []byte(hashOf(index).String() + "\n")
	own.blob(dir+"manifests/", index)
	own.blob(dir+"manifests/", manifest)
	own.blob(dir+"blobs/", config)
	layers, err := pause.OCI.Layers()
	for _, layer := range layers {
		data, readErr := layerData(layer)
		err = errors.Join(err, readErr)
		own.blob(dir+"blobs/", data)
	}
	return err
}

// blob adds data under both names that the registry in agnhost may use: its
// digest (up to Kubernetes 1.35), and a path made from its digest.
func (c *content) blob(dir string, data []byte) {
	h := hashOf(data)
	c.Texts[dir+h.String()] = data
	c.Texts[dir+h.Algorithm+"/"+h.Hex[:2]+"/"+h.Hex+"/data"] = data
}

func layerData(layer v1.Layer) ([]byte, error) {
	stream, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var data bytes.Buffer
	_, err = data.ReadFrom(stream)
	return data.Bytes(), err
}
