package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Created reports whether MkdirAll created a directory.
func (f Files) Created(dir string) bool {
	made, _ := createdDirs(f)
	return slices.Contains(made, dir)
}

// createdDirs returns the recorded directories. The error is why the record cannot be used:
// fs.ErrNotExist, or Damaged beside the lines.
func createdDirs(files Files) ([]string, error) {
	noted, err := files.Read(createdDirsFile)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(noted)), "\n")
	if !slices.Contains(lines, StateDir) {
		return lines, &Damaged{createdDirsFile, fmt.Errorf("it does not contain %s", StateDir)}
	}
	for _, line := range lines {
		if !isPath(line) {
			return lines, &Damaged{createdDirsFile, fmt.Errorf("%q is not a directory", line)}
		}
	}
	return lines, nil
}

func isPath(line string) bool { return filepath.IsAbs(line) && filepath.Clean(line) == line }

// CreatedDirsID identifies MadeDirs.
const CreatedDirsID step.ID = "created-dirs"

// CreatedDirs is the step that repairs the record of the directories that
// MkdirAll created. If the record was lost, the existing directories of known
// count as created: they are removed only if they are empty. Its Undo runs
// first, because the Undo of all other steps needs the record.
func CreatedDirs(files Files, known []string) step.Step {
	repair := func() error {
		lines, err := createdDirs(files)
		if !Lost(err) {
			return err
		}
		made := []string{StateDir}
		for _, dir := range append(lines, known...) {
			if isPath(dir) && files.Exists(dir) && !slices.Contains(made, dir) {
				made = append(made, dir)
			}
		}
		return files.Write(createdDirsFile, []byte(strings.Join(made, "\n")+"\n"), 0o600)
	}
	return step.Step{
		ID: CreatedDirsID, Name: "record the created directories",
		Check: func(context.Context) (step.Diff, error) {
			_, err := createdDirs(files)
			if Lost(err) {
				return step.Diff{fmt.Sprintf("write %s again: %v", createdDirsFile, err)}, nil
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
