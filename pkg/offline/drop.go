package offline

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Drop is the step that removes from a store the images that we loaded and that
// are wanted no more. It comes when nothing runs from them.
func (s Source) Drop(into Target) step.Step {
	l := loading{s, into}
	return step.Step{
		Name: "remove replaced images from " + place(into.Kind()),
		Check: func(context.Context) (step.Diff, error) {
			_, replaced, err := l.replaced()
			var diff step.Diff
			for _, ref := range replaced {
				diff = append(diff, "remove image "+ref)
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			wanted, replaced, err := l.replaced()
			if err != nil || len(replaced) == 0 {
				return err
			}
			if err := into.Remove(ctx, replaced); err != nil {
				return err
			}
			return l.Files.Remember(l.recordPath(), wanted)
		},
	}
}

// replaced splits what we loaded into what is wanted and what is not.
func (l loading) replaced() (wanted, replaced []string, err error) {
	refs, err := l.recorded()
	for _, ref := range refs {
		if slices.ContainsFunc(l.Images, func(i image.Image) bool { return i.Ref == ref }) {
			wanted = append(wanted, ref)
		} else {
			replaced = append(replaced, ref)
		}
	}
	return wanted, replaced, err
}
