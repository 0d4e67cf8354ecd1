package registry

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// laidPath is the file that lists the files that ConfigureClients wrote.
const laidPath = host.StateDir + "/registry-files.json"

// laidNames are the base names of these files.
var laidNames = []string{"hosts.toml", "ca.crt", "client.cert", "client.key", "config.json"}

var laidRecord = host.Record[[]string]{Path: laidPath, Valid: func(paths []string) error {
	for _, p := range paths {
		if !path.IsAbs(p) || !slices.Contains(laidNames, path.Base(p)) {
			return fmt.Errorf("%q is not a file of a registry", p)
		}
	}
	return nil
}}

// Lay is the step that configures Docker and containerd of a host for the
// registry by writing the wanted files. It restores the original of a file
// that is no longer wanted. Undo restores all originals.
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
	if err != nil {
		return nil, err
	}
	records, err := l.recordDiff()
	return append(diff, records...), err
}

// laid returns the files that Lay wrote. If the record is lost, these are the
// replaced files with such a base name.
func (l lay) laid() ([]string, error) {
	paths, err := laidRecord.Read(l.files)
	if !host.Lost(err) {
		return paths, err
	}
	return slices.DeleteFunc(l.files.Replaced(), func(p string) bool { return !slices.Contains(laidNames, path.Base(p)) }), nil
}

// recordDiff reports a damaged record or original, if there are such files.
func (l lay) recordDiff() (step.Diff, error) {
	paths, err := l.laid()
	if err != nil || len(paths) == 0 && !l.files.Exists(laidPath) {
		return nil, err
	}
	diff, err := laidRecord.Diff(l.files)
	for _, p := range paths {
		original, originalErr := l.files.OriginalDiff(p)
		diff, err = append(diff, original...), errors.Join(err, originalErr)
	}
	return diff, err
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
	if err != nil {
		return err
	}
	record, err := l.files.OriginalDiff(f.Path)
	if err != nil || len(diff)+len(record) == 0 {
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
	return laidRecord.Write(l.files, paths)
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
