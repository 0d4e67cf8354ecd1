package registry

import (
	"context"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// laidPath lists the files of the owner's programs that Lay wrote.
const laidPath = host.StateDir + "/registry-files.json"

// Lay is the step that tells the programs of a host the way to the registry,
// each by files of its own. What was there before is put back by Undo, and as
// soon as a file is no longer wanted.
func Lay(files host.Files, wanted func() ([]host.File, error)) step.Step {
	l := lay{files, wanted}
	return step.Step{Name: "show the way to the registry", Check: l.check, Apply: l.apply, Undo: l.undo}
}

type lay struct {
	files  host.Files
	wanted func() ([]host.File, error)
}

func (l lay) check(context.Context) (step.Diff, error) {
	tree, err := l.wanted()
	if err != nil {
		return nil, err
	}
	diff, err := l.files.Missing(tree)
	if err != nil {
		return nil, err
	}
	old, err := l.outdated(tree)
	for _, path := range old {
		diff = append(diff, "put back "+path)
	}
	return diff, err
}

func (l lay) laid() (paths []string, err error) {
	_, err = l.files.Recall(laidPath, &paths)
	return paths, err
}

func (l lay) outdated(tree []host.File) ([]string, error) {
	paths, err := l.laid()
	return slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(tree, func(f host.File) bool { return f.Path == path })
	}), err
}

func (l lay) apply(ctx context.Context) error {
	tree, err := l.wanted()
	if err != nil {
		return err
	}
	old, err := l.outdated(tree)
	if err != nil {
		return err
	}
	paths := slices.Clone(old)
	for _, f := range tree {
		paths = append(paths, f.Path)
	}
	if err := l.remember(paths); err != nil {
		return err
	}
	for _, f := range tree {
		if err := l.replace(f); err != nil {
			return err
		}
	}
	if err := l.putBack(ctx, old); err != nil {
		return err
	}
	return l.remember(slices.DeleteFunc(paths, func(path string) bool { return slices.Contains(old, path) }))
}

func (l lay) replace(f host.File) error {
	diff, err := l.files.Missing([]host.File{f})
	if err != nil || len(diff) == 0 {
		return err
	}
	mode := f.Mode
	if mode == 0 {
		mode = 0o600
	}
	return l.files.Replace(f.Path, f.Data, mode)
}

func (l lay) remember(paths []string) error {
	if len(paths) == 0 {
		return l.files.Remove(laidPath)
	}
	return l.files.Remember(laidPath, paths)
}

func (l lay) putBack(ctx context.Context, paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, l.files.PutBack(ctx, path))
	}
	return errors.Join(errs...)
}

func (l lay) undo(ctx context.Context) error {
	paths, err := l.laid()
	if err != nil {
		return err
	}
	if err := l.putBack(ctx, paths); err != nil {
		return err
	}
	return l.files.Remove(laidPath)
}
