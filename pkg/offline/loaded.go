package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// loadingPath exists while images are loaded. A name may then refer to an older image.
func (l loading) loadingPath() string { return l.path() + ".loading" }

func (l loading) path() string {
	name := strings.ToLower(strings.TrimSpace(string(l.into.Kind()) + " " + l.source.Part))
	return host.StateDir + "/images/" + strings.ReplaceAll(name, " ", "-")
}

// record is the file that lists the references that we have loaded.
func (l loading) record() host.Record[[]string] {
	return host.Record[[]string]{Path: l.path() + ".json", Valid: validRefs}
}

func validRefs(refs []string) error {
	for _, ref := range refs {
		if _, err := name.ParseReference(ref); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns the references that we have loaded. If the record is damaged,
// these are all references that we load; if it is missing, none.
func (l loading) recorded() ([]string, error) {
	refs, err := l.record().Read(l.source.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case host.IsDamaged(err):
		return l.wantedRefs(), nil
	}
	return refs, err
}

func (l loading) wantedRefs() (refs []string) {
	for _, i := range l.source.Images {
		if i.In(l.into.Kind()) {
			refs = append(refs, i.Ref)
		}
	}
	return refs
}

// repairRecord replaces a damaged record.
func (l loading) repairRecord() error {
	diff, err := l.record().DiffIfSaved(l.source.Files)
	if err != nil || len(diff) == 0 {
		return err
	}
	return l.record().Write(l.source.Files, l.wantedRefs())
}

// begin records the images before they are loaded, for Undo after an interrupted load.
func (l loading) begin(images []bundle.MultiPlatformImage) error {
	if l.source.KeepImages {
		return nil
	}
	refs, err := l.recorded()
	if err != nil {
		return err
	}
	if err := l.source.Files.Write(l.loadingPath(), nil, 0o600); err != nil {
		return err
	}
	for _, ref := range bundle.References(images) {
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return l.record().Write(l.source.Files, refs)
}

func (l loading) finish() error { return l.source.Files.Remove(l.loadingPath()) }

// Has reports whether a store has the images of a bundle that belong there. The bootstrap
// Docker need not run: it has what kube-bootstrap has recorded.
func (s Source) Has(ctx context.Context, from *bundle.Bundle, into imagestore.Target) bool {
	l := loading{s, into}
	if into.Kind() == image.Bootstrap {
		return l.ours()
	}
	missing, err := l.missing(ctx, from)
	return err == nil && len(missing) == 0
}

// Drop returns the step that removes from a store the images that we loaded and no longer need.
// It must run when the cluster no longer uses them. An image that a user's container uses stays
// until a later run, or until turndown.
func (s Source) Drop(into imagestore.Target) step.Step {
	l := loading{s, into}
	return step.Step{
		ID: step.IDOf("drop-images", string(into.Kind())), Name: "remove replaced images from " + place(into.Kind()),
		Check: func(ctx context.Context) (step.Diff, error) {
			_, replaced, err := l.replaced(ctx)
			var diff step.Diff
			for _, ref := range replaced {
				diff = append(diff, "remove image "+ref)
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			kept, replaced, err := l.replaced(ctx)
			if err != nil || len(replaced) == 0 {
				return err
			}
			if err := into.Remove(ctx, replaced); err != nil {
				return err
			}
			return l.record().Write(l.source.Files, kept)
		},
	}
}

// replaced splits the loaded images into those to keep and those to remove.
func (l loading) replaced(ctx context.Context) (kept, replaced []string, err error) {
	refs, err := l.recorded()
	if err != nil {
		return nil, nil, err
	}
	old := slices.DeleteFunc(slices.Clone(refs), func(ref string) bool {
		return slices.ContainsFunc(l.source.Images, func(i image.Image) bool { return i.Ref == ref })
	})
	replaced, _, err = l.sort(ctx, old)
	return slices.DeleteFunc(refs, func(ref string) bool { return slices.Contains(replaced, ref) }), replaced, err
}

// sort separates the images that can be removed from the images that containers of the
// user need, and names these containers.
func (l loading) sort(ctx context.Context, refs []string) (free, used []string, err error) {
	for _, ref := range refs {
		users, err := l.into.Users(ctx, ref)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("list the containers that use image %s: %w", ref, err)
		case len(users) > 0:
			containers := "container"
			if len(users) > 1 {
				containers += "s"
			}
			used = append(used, fmt.Sprintf("image %s in %s: used by %s %s", ref, place(l.into.Kind()), containers,
				strings.Join(users, ", ")))
		default:
			free = append(free, ref)
		}
	}
	return free, used, nil
}
