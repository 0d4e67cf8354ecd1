package offline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Drop returns the step that removes from a store the images that we loaded and
// no longer need. It must run after everything of the cluster has stopped using
// them. An image that a user's container uses stays until a later run, or until
// turndown.
func (s Source) Drop(into imagestore.Target) step.Step {
	l := loading{s, into}
	return step.Step{
		Name: "remove replaced images from " + place(into.Kind()),
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
			return l.record().Write(l.Files, kept)
		},
	}
}

// replaced splits the loaded images into those to keep and those to remove.
func (l loading) replaced(ctx context.Context) (kept, replaced []string, err error) {
	refs, err := l.recorded()
	if err != nil {
		return nil, nil, err
	}
	for _, ref := range refs {
		if slices.ContainsFunc(l.Images, func(i image.Image) bool { return i.Ref == ref }) {
			kept = append(kept, ref)
		} else {
			replaced = append(replaced, ref)
		}
	}
	free, used, err := l.sort(ctx, replaced)
	for _, u := range used {
		kept = append(kept, u.ref)
	}
	return kept, free, err
}

// usedImage is an image that we loaded and that containers of the user now use.
type usedImage struct {
	ref   string
	users []string
	store image.Store
}

func (u usedImage) String() string {
	containers := "container"
	if len(u.users) > 1 {
		containers += "s"
	}
	return fmt.Sprintf("image %s in %s: used by %s %s", u.ref, place(u.store), containers, strings.Join(u.users, ", "))
}

// sort separates images that can be removed from images in use. Images in use
// stay, because a container cannot be created again without its image.
func (l loading) sort(ctx context.Context, refs []string) (free []string, used []usedImage, err error) {
	for _, ref := range refs {
		users, err := l.into.Users(ctx, ref)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("look who uses image %s: %w", ref, err)
		case len(users) > 0:
			used = append(used, usedImage{ref, users, l.into.Kind()})
		default:
			free = append(free, ref)
		}
	}
	return free, used, nil
}
