// Package offline implements the commands for hosts without access to the
// internet: it builds, pulls, pushes and lists bundles, and loads the images of a
// bundle, of a registry or of a Docker into the image stores of a host.
package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Load returns the step that loads into a store the images that belong there.
func (s Source) Load(into imagestore.Target) step.Step {
	l := loading{s, into}
	return step.Step{
		ID:   step.IDOf("load", cmp.Or(s.Part, "images"), string(into.Kind())),
		Name: "load " + cmp.Or(s.Part, "images") + " into " + place(into.Kind()), Check: l.check,
		Apply: l.apply, Undo: l.undo,
	}
}

func place(kind image.Store) string {
	if kind == image.Containerd {
		return string(kind)
	}
	return "the " + string(kind)
}

type loading struct {
	source Source
	into   imagestore.Target
}

func (l loading) check(ctx context.Context) (step.Diff, error) {
	from, missing, err := l.compare(ctx)
	if from != nil {
		from.Close()
	}
	if err != nil && l.source.Expected {
		missing, err = l.missing(ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	diff, err := l.record().DiffIfSaved(l.source.Files)
	for _, i := range missing {
		diff = append(diff, "load image "+i.Ref)
	}
	if from != nil && len(missing) == 0 && l.source.Files.Exists(l.loadingPath()) {
		diff = append(diff, "note that an interrupted load is complete")
	}
	return diff, err
}

func (l loading) apply(ctx context.Context) error {
	from, missing, err := l.compare(ctx)
	if from != nil {
		defer from.Close()
	}
	if err != nil {
		return err
	}
	if err := l.repairRecord(); err != nil {
		return err
	}
	if from == nil {
		return nil // nothing to compare the images with
	}
	if len(missing) == 0 {
		return l.finish()
	}
	if err := from.CheckImages(ctx, missing, l.source.Arch); err != nil {
		return err
	}
	if err := l.begin(missing); err != nil {
		return err
	}
	if err := l.load(ctx, from, missing); err != nil {
		return err
	}
	return l.finish()
}

func (l loading) load(ctx context.Context, from imageSource, missing []bundle.MultiPlatformImage) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	archive := from.Archive(ctx, missing, l.source.Arch)
	err := l.into.Load(ctx, archive.Open)
	readErr := archive.Err()
	switch {
	case readErr == nil:
		return err
	case l.source.remote():
		return readErr // images that are complete stay: the next run loads the rest
	}
	return errors.Join(readErr, l.takeBack(ctx, missing))
}

// takeBack removes the images that were loaded from a damaged bundle.
func (l loading) takeBack(ctx context.Context, images []bundle.MultiPlatformImage) error {
	var loaded []string
	for _, i := range images {
		state, err := l.into.State(ctx, wanted(i, l.source.Arch))
		if err != nil {
			return err
		}
		if state == imagestore.Same {
			loaded = append(loaded, i.Ref)
		}
	}
	return l.into.Remove(ctx, loaded)
}

// compare returns the images that the store lacks, and their source. It compares only the names of
// images if kube-bootstrap has loaded them from a registry, if the registry is unavailable, or if
// there is no bundle.
func (l loading) compare(ctx context.Context) (imageSource, []bundle.MultiPlatformImage, error) {
	unnamed, err := l.missing(ctx, nil)
	if err != nil || l.source.Registry != nil && len(unnamed) == 0 && l.ours() {
		return nil, nil, err
	}
	from, err := l.source.open(ctx)
	switch {
	case err == nil:
		missing, err := l.missing(ctx, from)
		return from, missing, err
	case len(unnamed) > 0:
		return nil, nil, fmt.Errorf("%s lacks %s: %w", place(l.into.Kind()),
			strings.Join(bundle.References(unnamed), ", "), err)
	case l.source.Registry != nil && !errors.Is(err, bundle.ErrUntrusted), errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil // nothing to compare them with
	}
	return nil, nil, err
}

// ours reports whether kube-bootstrap loaded all images. Images that somebody else loaded may be
// another build.
func (l loading) ours() bool {
	ours, err := l.recorded()
	return err == nil && !l.source.Files.Exists(l.loadingPath()) &&
		!slices.ContainsFunc(l.source.Images, func(i image.Image) bool {
			return i.In(l.into.Kind()) && i.Addon == "" && !l.source.KeepImages && !slices.Contains(ours, i.Ref)
		})
}

func (l loading) missing(ctx context.Context, from imageSource) ([]bundle.MultiPlatformImage, error) {
	ours, err := l.recorded()
	if err != nil {
		return nil, err
	}
	var missing []bundle.MultiPlatformImage
	for _, img := range l.source.Images {
		if !img.In(l.into.Kind()) || l.lacks(from, img) {
			continue
		}
		found := bundle.MultiPlatformImage{Image: img}
		if from != nil {
			if found, err = from.Find(img.Ref, l.source.Arch); err != nil {
				return nil, err
			}
		}
		state, err := l.into.State(ctx, wanted(found, l.source.Arch))
		if err != nil {
			return nil, fmt.Errorf("look for image %s: %w", img.Ref, err)
		}
		if state == imagestore.Absent || state == imagestore.Other && l.mayReplace(img.Ref, ours) {
			missing = append(missing, found)
		}
	}
	return missing, nil
}

// lacks reports whether a source lacks an image that a host needs only with an addon.
func (l loading) lacks(from imageSource, img image.Image) bool {
	if img.Addon == "" || from == nil {
		return img.Addon != ""
	}
	found, err := from.Find(img.Ref, l.source.Arch)
	return err != nil || len(found.Platforms[l.source.Arch].Layers) == 0
}

// wanted returns what a store must have of an image.
func wanted(i bundle.MultiPlatformImage, arch string) imagestore.RequiredImage {
	p := i.Platforms[arch]
	return imagestore.RequiredImage{
		Ref: i.Ref, Index: i.Index, Manifest: p.Manifest, Config: p.Config, Layers: p.Layers,
	}
}

// mayReplace reports whether other content may be replaced: not if the user has pulled it.
func (l loading) mayReplace(ref string, ours []string) bool {
	return l.source.KeepImages || strings.HasPrefix(ref, image.OurRegistry+"/") || slices.Contains(ours, ref)
}

func (l loading) undo(ctx context.Context) error {
	refs, err := l.recorded()
	if err != nil || l.source.KeepImages {
		return err
	}
	if refs == nil {
		refs = l.ownNames()
	}
	free, used, err := l.sort(ctx, refs)
	if err != nil {
		return err
	}
	if err := l.into.Remove(ctx, free); err != nil {
		return err
	}
	for _, u := range used {
		step.Leave(ctx, u)
	}
	return l.source.Files.Drop(l.loadingPath(), l.record().Path)
}

// ownNames returns the images with our names. The user may have loaded them into the main Docker.
func (l loading) ownNames() []string {
	if l.into.Kind() == image.Main {
		return nil
	}
	return slices.DeleteFunc(l.wantedRefs(),
		func(ref string) bool { return !strings.HasPrefix(ref, image.OurRegistry+"/") })
}
