package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// original is the saved state of a file before Replace.
type original struct {
	access
	Absent bool   `json:"absent,omitempty"`
	Data   []byte `json:"data,omitempty"`
	Ours   []byte `json:"ours,omitempty"` // what Replace last wrote
	Lost   bool   `json:"lost,omitempty"` // the record was damaged, so the original is unknown
}

func (o original) valid() error {
	if !o.Absent && !o.Lost && o.Mode == 0 || o.Ours == nil {
		return errors.New("it does not contain both versions of the file")
	}
	return nil
}

func originalOf(path string) Record[original] {
	return Record[original]{Path: filepath.Join(StateDir, "original", path) + ".json", Valid: original.valid}
}

// Replace writes data to a file of the user. The first Replace saves the
// original for PutBack. The file keeps its mode and owner, because it may
// contain a password. If the file does not exist, or if mode grants nothing
// to group and others, it gets the given mode.
func (f Files) Replace(path string, data []byte, mode os.FileMode) error {
	kept, err := originalOf(path).Read(f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kept, err = f.readOriginal(path)
	case IsDamaged(err):
		kept, err = original{Lost: true}, nil
	}
	if err != nil {
		return err
	}
	kept.Ours = data
	if err := originalOf(path).Write(f, kept); err != nil {
		return err
	}
	may, err := accessTo(f.Path(path), access{Mode: mode})
	if err != nil {
		return err
	}
	if mode&0o077 == 0 {
		may.Mode = mode
	}
	return f.writeAs(path, data, may)
}

// KeepOriginal saves data as the original of path, for a caller that
// reconstructed it after the record was lost. nil means that the file did not
// exist.
func (f Files) KeepOriginal(path string, data []byte) error {
	ours, err := f.Read(path)
	if err != nil {
		return err
	}
	may, err := accessTo(f.Path(path), access{})
	if err != nil {
		return err
	}
	return originalOf(path).Write(f, original{access: may, Absent: data == nil, Data: data, Ours: ours})
}

// OriginalDiff is the part of a Check that verifies the record of a replaced
// file.
func (f Files) OriginalDiff(path string) (step.Diff, error) {
	if !f.Exists(originalOf(path).Path) {
		return nil, nil
	}
	return originalOf(path).Diff(f)
}

// Original returns the content of the file before the first Replace, nil if
// it did not exist. It returns fs.ErrNotExist if the file was never replaced.
func (f Files) Original(path string) ([]byte, error) {
	kept, err := originalOf(path).Read(f)
	return kept.Data, err
}

// PutBack restores the original that Replace saved, if the file is unchanged
// since. Otherwise it leaves the file, saves the original under another name,
// and reports both with step.Leave. Without a saved original it does nothing.
func (f Files) PutBack(ctx context.Context, path string) error {
	kept, err := originalOf(path).Read(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if IsDamaged(err) || err == nil && kept.Lost {
		step.Leave(ctx, path+": the saved original of this file is damaged; restore the file from a backup, or remove it if nothing needs it")
		return f.Forget(path)
	}
	if err != nil {
		return err
	}
	now, err := f.Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	restored := kept.Absent && err != nil || !kept.Absent && bytes.Equal(now, kept.Data)
	if restored || bytes.Equal(now, kept.Ours) {
		err = f.restore(path, kept)
	} else {
		err = f.leave(ctx, path, kept)
	}
	if err := errors.Join(err, f.removeHalfWritten(path)); err != nil {
		return err
	}
	return f.Forget(path)
}

// leave keeps a file that was changed after Replace.
func (f Files) leave(ctx context.Context, path string, kept original) error {
	if kept.Absent {
		step.Leave(ctx, path+": it was changed since kube-bootstrap created it; remove it if nothing needs it")
		return nil
	}
	beside := path + ".before-kube-bootstrap"
	step.Leave(ctx, path+": it was changed since kube-bootstrap replaced it; the original is "+beside)
	return f.writeAs(beside, kept.Data, kept.access)
}

func (f Files) restore(path string, kept original) error {
	if kept.Absent {
		return f.Remove(path)
	}
	return f.writeAs(path, kept.Data, kept.access)
}

func (f Files) readOriginal(path string) (original, error) {
	data, err := f.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return original{Absent: true}, nil
	}
	if err != nil {
		return original{}, err
	}
	may, err := accessTo(f.Path(path), access{})
	return original{access: may, Data: data}, err
}

// Ours returns the content that Replace last wrote at path, or fs.ErrNotExist
// if the file was never replaced.
func (f Files) Ours(path string) ([]byte, error) {
	kept, err := originalOf(path).Read(f)
	return kept.Ours, err
}

// Restore restores the original of a replaced file, whatever the file
// contains now. The caller has verified that only changes by kube-bootstrap
// are lost.
func (f Files) Restore(path string) error {
	kept, err := originalOf(path).Read(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.restore(path, kept); err != nil {
		return err
	}
	return f.Forget(path)
}

// Forget removes the saved original, because the file now belongs to the user
// again.
func (f Files) Forget(path string) error { return f.Remove(originalOf(path).Path) }

// Replaced lists the files of which Replace saved an original.
func (f Files) Replaced() []string {
	dir := filepath.Join(StateDir, "original")
	var paths []string
	_ = filepath.WalkDir(f.Path(dir), func(path string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutPrefix(path, f.Path(dir)); ok && err == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".json") {
			paths = append(paths, strings.TrimSuffix(name, ".json"))
		}
		return nil
	})
	return paths
}
