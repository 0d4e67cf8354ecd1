package offline

import (
	"context"
	"slices"

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
