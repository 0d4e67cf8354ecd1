package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Made reports whether MkdirAll created a directory.
func (f Files) Made(dir string) bool {
	made, err := made(f)
	return err == nil && slices.Contains(made, dir)
}

// made returns the recorded directories. A damaged line equals none of them.
func made(files Files) ([]string, error) {
	noted, err := files.Read(madeDirs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Split(strings.TrimSpace(string(noted)), "\n"), err
}

// madeProblem returns why the record cannot be used: fs.ErrNotExist or
// Damaged.
func madeProblem(files Files) error {
	if _, err := files.Read(madeDirs); err != nil {
		return err
	}
	lines, err := made(files)
	if err != nil {
		return err
	}
	if !slices.Contains(lines, StateDir) {
		return &Damaged{madeDirs, fmt.Errorf("it does not contain %s", StateDir)}
	}
	for _, line := range lines {
		if !isPath(line) {
			return &Damaged{madeDirs, fmt.Errorf("%q is not a directory", line)}
		}
	}
	return nil
}

func isPath(line string) bool { return filepath.IsAbs(line) && filepath.Clean(line) == line }

// MadeDirs is the step that repairs the record of the directories that
// MkdirAll created. If the record was lost, the existing directories of known
// count as created: they are removed only if they are empty. Its Undo runs
// first, because the Undo of all other steps needs the record.
func MadeDirs(files Files, known []string) step.Step {
	repair := func() error {
		if err := madeProblem(files); !Lost(err) {
			return err
		}
		lines, err := made(files)
		if err != nil {
			return err
		}
		made := []string{StateDir}
		for _, dir := range append(slices.DeleteFunc(lines, func(line string) bool { return !isPath(line) }), known...) {
			if files.Exists(dir) && !slices.Contains(made, dir) {
				made = append(made, dir)
			}
		}
		return files.Write(madeDirs, []byte(strings.Join(made, "\n")+"\n"), 0o600)
	}
	return step.Step{
		Name: "remember the directories that were made",
		Check: func(context.Context) (step.Diff, error) {
			err := madeProblem(files)
			if Lost(err) {
				return step.Diff{fmt.Sprintf("write %s again: %v", madeDirs, err)}, nil
			}
			return nil, err
		},
		Apply: func(context.Context) error { return repair() },
		Undo: func(context.Context) error {
			if !files.Exists(StateDir) {
				return nil
			}
			return repair()
		},
	}
}
