package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cniplugins"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Source is where the images of this host are taken from, and what is wanted of
// them: from a registry or a Docker of this host if there is one, else from the
// bundle at Path.
type Source struct {
	Registry   *registry.Registry
	Docker     *docker.Engine
	Versions   image.Versions
	Path       string        // HostPath, or what --bundle says
	Base       string        // the bundle that Path was built on; empty: none
	VerifyKey  string        // public key that Path must be signed by; empty: any bundle will do
	Images     []image.Image // what the cluster runs
	Arch       string        // of this host
	Files      host.Files
	Feed       *Feed  // of all loads of this host; nil: it shares nothing
	KeepImages bool   // Undo leaves the images where they are
	Part       string // of the images for a store, "etcd", that has a step of its own; empty: all
}

// Open opens the bundle with what it needs.
func (s Source) Open() (*Bundle, error) {
	return Open(s.Path, SignedBy(s.VerifyKey), WithBase(s.Base), sharing(s.Feed))
}

// Load is the step that brings into a store those images that belong there.
func (s Source) Load(into imagestore.Target) step.Step {
	l, what := loading{s, into}, "images"
	if s.Part != "" {
		what = s.Part
	}
	return step.Step{Name: "load " + what + " into " + place(into.Kind()), Check: l.check, Apply: l.apply, Undo: l.undo}
}

// InstallCNIPlugins is the step that installs the CNI plugins of this source.
func (s Source) InstallCNIPlugins() step.Step {
	open := func(ctx context.Context) (cniplugins.Source, error) { return s.origin(ctx) }
	return cniplugins.Installer{Files: s.Files, Arch: s.Arch, Open: open, Remote: s.asks()}.Step()
}

func place(kind image.Store) string {
	if kind == image.Containerd {
		return string(kind)
	}
	return "the " + string(kind)
}

type loading struct {
	Source
	into imagestore.Target
}

func (l loading) check(ctx context.Context) (step.Diff, error) {
	from, missing, err := l.look(ctx)
	if from != nil {
		from.Close()
	}
	if err != nil {
		return nil, err
	}
	diff, err := l.recordDiff()
	for _, e := range missing {
		diff = append(diff, "load image "+e.Ref)
	}
	return diff, err
}

func (l loading) apply(ctx context.Context) error {
	from, missing, err := l.look(ctx)
	if from != nil {
		defer from.Close()
	}
	if err != nil {
		return err
	}
	if err := l.repairRecord(); err != nil {
		return err
	}
	if len(missing) == 0 {
		return l.finish()
	}
	if err := from.check(ctx, missing, l.Arch); err != nil {
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

func (l loading) load(ctx context.Context, from origin, missing []Entry) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	read := from.read(within, missing, l.Arch)
	err := l.into.Load(within, func() io.ReadCloser { return read.open(missing...) })
	failed := read.failed()
	switch {
	case failed == nil:
		return err
	case l.asks():
		return failed // what came whole may stay: the next run goes on from there
	}
	return errors.Join(failed, l.takeBack(ctx, missing))
}

// takeBack removes what was loaded of a bundle that turned out to be bad.
func (l loading) takeBack(ctx context.Context, entries []Entry) error {
	var loaded []string
	for _, e := range entries {
		state, err := l.into.State(ctx, e.wanted(l.Arch))
		if err != nil {
			return err
		}
		if state == imagestore.Same {
			loaded = append(loaded, e.Ref)
		}
	}
	return l.into.Remove(ctx, loaded)
}

// look returns the images that the store lacks, and what to take them from.
// Where the images were loaded by us, or a registry is away, it is enough that
// each has its name there.
func (l loading) look(ctx context.Context) (origin, []Entry, error) {
	named, err := l.allNamed(ctx)
	if err != nil || named && l.ours() {
		return nil, nil, err
	}
	from, openErr := l.origin(ctx)
	if named && openErr != nil && !errors.Is(openErr, ErrUntrusted) {
		return nil, nil, nil // nobody can say that they are not the right ones
	}
	if openErr != nil {
		return nil, nil, l.lacking(ctx, openErr)
	}
	missing, err := l.missing(ctx, from)
	return from, missing, err
}

// lacking adds to the error of an origin which images it is needed for. None
// needs a bundle that does not exist if the store has an image of each name.
func (l loading) lacking(ctx context.Context, openErr error) error {
	missing, err := l.missing(ctx, nil)
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return fmt.Errorf("%s lacks %s: %w", place(l.into.Kind()), strings.Join(references(missing), ", "), openErr)
	case errors.Is(openErr, fs.ErrNotExist):
		return nil
	}
	return openErr
}

// allNamed reports whether a registry need not be there, as it may be away: the
// store has an image of each name.
func (l loading) allNamed(ctx context.Context) (bool, error) {
	if l.Registry == nil {
		return false, nil
	}
	missing, err := l.missing(ctx, nil)
	return err == nil && len(missing) == 0, err
}

// ours reports whether it was us who loaded all that belongs into the store:
// then their names are good enough. Those of others may be of another build.
func (l loading) ours() bool {
	ours, err := l.recorded()
	return err == nil && !l.Files.Exists(l.underWayPath()) && !slices.ContainsFunc(l.Images, func(i image.Image) bool {
		return i.In(l.into.Kind()) && !l.KeepImages && !slices.Contains(ours, i.Ref)
	})
}

func (l loading) missing(ctx context.Context, from origin) ([]Entry, error) {
	ours, err := l.recorded()
	if err != nil {
		return nil, err
	}
	var missing []Entry
	for _, img := range l.Images {
		if !img.In(l.into.Kind()) {
			continue
		}
		entry := Entry{Image: img}
		if from != nil {
			if entry, err = from.find(img.Ref, l.Arch); err != nil {
				return nil, err
			}
		}
		state, err := l.into.State(ctx, entry.wanted(l.Arch))
		if err != nil {
			return nil, fmt.Errorf("look for image %s: %w", img.Ref, err)
		}
		if state == imagestore.Absent || state == imagestore.Other && l.mayReplace(img.Ref, ours) {
			missing = append(missing, entry)
		}
	}
	return missing, nil
}

// wanted returns what a store must have of an image.
func (e Entry) wanted(arch string) imagestore.Image {
	v := e.Variants[arch]
	return imagestore.Image{Ref: e.Ref, Index: e.Index, Manifest: v.Manifest, Config: v.Config, Layers: v.Layers}
}

// mayReplace says whether an image of other content is ours to replace. One
// that the owner pulled under an upstream name serves as well.
func (l loading) mayReplace(ref string, ours []string) bool {
	return l.KeepImages || strings.HasPrefix(ref, image.OurRegistry+"/") || slices.Contains(ours, ref)
}

func (l loading) undo(ctx context.Context) error {
	refs, err := l.recorded()
	if err != nil || l.KeepImages {
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
		step.Leave(ctx, u.String())
	}
	return l.Files.Drop(l.underWayPath(), l.recordPath())
}

// ownNames are the images that have names of ours. Into the main Docker a user
// may have loaded them by hand, so that none there counts as ours without a
// record.
func (l loading) ownNames() []string {
	if l.into.Kind() == image.Main {
		return nil
	}
	return slices.DeleteFunc(l.wanted(), func(ref string) bool { return !strings.HasPrefix(ref, image.OurRegistry+"/") })
}
