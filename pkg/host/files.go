package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StateDir contains what turndown needs to know about the host.
const StateDir = "/var/lib/kube-bootstrap"

// LogDir contains the logs of the runs that changed the host. turndown removes it.
const LogDir = "/var/log/kube-bootstrap"

// Files is the file system below Root; an empty Root is the root of the machine.
type Files struct{ Root string }

// Path returns the path of a host's file in the file system of this process.
func (f Files) Path(path string) string { return filepath.Join("/", f.Root, path) }

// Read returns the content of a file.
func (f Files) Read(path string) ([]byte, error) { return os.ReadFile(f.Path(path)) }

// Exists reports whether there is anything at path.
func (f Files) Exists(path string) bool {
	_, err := os.Lstat(f.Path(path))
	return err == nil
}

// mode returns the permissions of a file, or 0 if they cannot be read.
func (f Files) mode(path string) os.FileMode {
	info, err := os.Stat(f.Path(path))
	if err != nil {
		return 0
	}
	return info.Mode().Perm()
}

// Write atomically replaces the file at path: a reader sees the old file or
// the new one, also after a crash. It creates missing parent directories and
// records them, so that Remove removes them again.
func (f Files) Write(path string, data []byte, mode os.FileMode) error {
	return f.WriteFrom(path, bytes.NewReader(data), mode)
}

// WriteFrom is Write with the data of a reader, which need not fit into memory.
func (f Files) WriteFrom(path string, data io.Reader, mode os.FileMode) error {
	return f.writeAs(path, data, access{Mode: mode})
}

func (f Files) writeAs(path string, data io.Reader, may access) error {
	if err := f.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return writeAtomic(f.Path(path), data, may)
}

// writeSize is the size of one write in bytes. The kernel caches a file in
// folios as large as the writes, up to 2 MB, and maps whole folios into a
// process that runs the file. Small writes keep the resident memory of the
// agent small.
const writeSize = 64 << 10

func writeAtomic(path string, data io.Reader, may access) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), halfWritten(path))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	// Without the wrappers, one system call would copy the whole file.
	_, err = io.CopyBuffer(struct{ io.Writer }{tmp}, struct{ io.Reader }{data}, make([]byte, writeSize))
	if err != nil {
		return err
	}
	if err = errors.Join(may.apply(tmp), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// halfWritten returns the pattern of the temporary files for a path.
func halfWritten(path string) string { return ".kube-bootstrap-" + filepath.Base(path) + "-*" }

// RemoveHalfWritten removes the temporary files of an interrupted Write. Remove does so too.
func (f Files) RemoveHalfWritten(path string) error {
	left := f.Match(filepath.Join(filepath.Dir(path), halfWritten(path)))
	return Each(left, func(path string) error { return removeFile(f.Path(path)) })
}

// removeFile removes a file. A missing file is not an error.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// createdDirsFile lists the directories that MkdirAll created, one per line, oldest first.
const createdDirsFile = StateDir + "/made-dirs"

// MkdirAll creates a directory and its parents with mode 0755, or 0700 for
// StateDir. It first records which of them are new, for Remove.
func (f Files) MkdirAll(dir string) error {
	var missing []string
	for d := filepath.Clean(dir); d != "/" && !f.Exists(d); d = filepath.Dir(d) {
		missing = append(missing, d)
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Reverse(missing)
	if err := f.noteDirs(missing); err != nil {
		return err
	}
	for _, d := range missing {
		if err := os.Mkdir(f.Path(d), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (f Files) noteDirs(dirs []string) error {
	if err := os.MkdirAll(f.Path(StateDir), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(f.Path(createdDirsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(dirs, "\n") + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

// Remove removes a file, and then each parent that is empty and was created
// by MkdirAll. A missing file is not an error.
func (f Files) Remove(path string) error {
	if err := errors.Join(removeFile(f.Path(path)), f.RemoveHalfWritten(path)); err != nil {
		return err
	}
	return f.removeEmptyParents(path)
}

// RemoveAll removes a directory with its content, and then parents as Remove does. It removes
// nothing if something is mounted below the directory. A directory that is a mount point itself
// is emptied and stays.
func (f Files) RemoveAll(path string) error {
	real := realParent(f.Path(path))
	points, err := mountsBelow(real)
	if err == nil && slices.Contains(points, real) && len(points) == 1 {
		return emptyDir(f, path)
	}
	if err == nil {
		err = removeUnmounted(real, points)
	}
	if err != nil {
		return err
	}
	return f.removeEmptyParents(path)
}

// removeTree removes a path with its content, unless something is mounted there or below it.
func removeTree(path string) error {
	path = realParent(path)
	points, err := mountsBelow(path)
	if err != nil {
		return err
	}
	return removeUnmounted(path, points)
}

// removeUnmounted is os.RemoveAll, which descends into mounts and removes the data of other file
// systems, for a path with the mount points below it.
func removeUnmounted(path string, points []string) error {
	if len(points) > 0 {
		return fmt.Errorf("remove %s: the data that is mounted on %s would be removed too; run `umount %[2]s`",
			path, points[0])
	}
	return os.RemoveAll(path)
}

// realParent returns path without symbolic links in front of its last element. os.RemoveAll
// removes a link at the end of its path, and follows all others.
func realParent(path string) string {
	return filepath.Join(RealPath(filepath.Dir(path)), filepath.Base(path))
}

func (f Files) removeEmptyParents(path string) error {
	made, err := createdDirs(f)
	if err != nil && !Lost(err) {
		return err
	}
	for d := filepath.Dir(path); slices.Contains(made, d); d = filepath.Dir(d) {
		if err := os.Remove(f.Path(d)); err != nil {
			break // not empty, or already removed
		}
	}
	return nil
}

// File is the desired state of a file.
type File struct {
	Path string
	Data []byte
	Mode os.FileMode // 0 means 0600
}

func (file File) mode() os.FileMode { return cmp.Or(file.Mode, 0o600) }

// Missing lists the changes that Put would make: files that do not exist or differ
// in content or mode.
func (f Files) Missing(tree []File) ([]string, error) {
	var diff []string
	for _, file := range tree {
		old, err := f.Read(file.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			diff = append(diff, "write "+file.Path)
		case err != nil:
			return nil, err
		case !bytes.Equal(old, file.Data):
			diff = append(diff, "change "+file.Path)
		case f.mode(file.Path) != file.mode():
			diff = append(diff, fmt.Sprintf("chmod %o %s", file.mode(), file.Path))
		}
	}
	return diff, nil
}

// Put writes each file of the tree that does not exist or differs.
func (f Files) Put(tree []File) error {
	for _, file := range tree {
		diff, err := f.Missing([]File{file})
		if err == nil && len(diff) > 0 {
			err = f.Write(file.Path, file.Data, file.mode())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Step returns the step that puts the files that wanted returns. It has no Undo.
func (f Files) Step(id step.ID, name string, wanted func() ([]File, error)) step.Step {
	return f.StepWith(id, name, wanted, func(_ context.Context, tree []File) error { return f.Put(tree) })
}

// StepWith is Step with another function than Put.
func (f Files) StepWith(
	id step.ID, name string, wanted func() ([]File, error), put func(context.Context, []File) error,
) step.Step {
	return step.Step{
		ID: id, Name: name,
		Check: func(context.Context) (step.Diff, error) {
			tree, err := wanted()
			if err != nil {
				return nil, err
			}
			return f.Missing(tree)
		},
		Apply: func(ctx context.Context) error {
			tree, err := wanted()
			if err != nil {
				return err
			}
			return put(ctx, tree)
		},
	}
}

// Drop removes files, and parents as Remove does.
func (f Files) Drop(paths ...string) error { return Each(paths, f.Remove) }
