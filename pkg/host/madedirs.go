package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Made reports whether MkdirAll created a directory.
func (f Files) Made(dir string) bool {
	made, _ := made(f)
	return slices.Contains(made, dir)
}

// made returns the recorded directories. The error is why the record cannot be used:
// fs.ErrNotExist, or Damaged beside the lines.
func made(files Files) ([]string, error) {
	noted, err := files.Read(madeDirs)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(noted)), "\n")
	if !slices.Contains(lines, StateDir) {
		return lines, &Damaged{madeDirs, fmt.Errorf("it does not contain %s", StateDir)}
	}
	for _, line := range lines {
		if !isPath(line) {
			return lines, &Damaged{madeDirs, fmt.Errorf("%q is not a directory", line)}
		}
	}
	return lines, nil
}

func isPath(line string) bool { return filepath.IsAbs(line) && filepath.Clean(line) == line }

// MadeDirsID identifies MadeDirs.
const MadeDirsID step.ID = "created-dirs"

// MadeDirs is the step that repairs the record of the directories that
// MkdirAll created. If the record was lost, the existing directories of known
// count as created: they are removed only if they are empty. Its Undo runs
// first, because the Undo of all other steps needs the record.
func MadeDirs(files Files, known []string) step.Step {
	repair := func() error {
		lines, err := made(files)
		if !Lost(err) {
			return err
		}
		made := []string{StateDir}
		for _, dir := range append(lines, known...) {
			if isPath(dir) && files.Exists(dir) && !slices.Contains(made, dir) {
				made = append(made, dir)
			}
		}
		return files.Write(madeDirs, []byte(strings.Join(made, "\n")+"\n"), 0o600)
	}
	return step.Step{
		ID: MadeDirsID, Name: "record the created directories",
		Check: func(context.Context) (step.Diff, error) {
			_, err := made(files)
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
