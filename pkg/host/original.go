package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// original is what stood at a path before we replaced it, kept once.
type original struct {
	access
	Absent bool   `json:"absent,omitempty"`
	Data   []byte `json:"data,omitempty"`
	Ours   []byte `json:"ours,omitempty"` // what we last wrote in its place
	Lost   bool   `json:"lost,omitempty"` // the record was damaged: nobody knows what stood there
}

func (o original) valid() error {
	if !o.Absent && !o.Lost && o.Mode == 0 || o.Ours == nil {
		return errors.New("it does not hold both versions of the file")
	}
	return nil
}

func originalOf(path string) Record[original] {
	return Record[original]{Path: filepath.Join(StateDir, "original", path) + ".json", Valid: original.valid}
}

// Replace writes data over a file of the user. What stood there before the
// first Replace is kept for PutBack. The file keeps its mode and owner, because
// it may contain a password. mode is that of a file that did not exist, and of
// one that root alone may read from now on.
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

// KeepOriginal keeps data as what stood at path before the first Replace, for
// a caller that has worked it out after the record was lost; nil: nothing did.
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

// OriginalDiff is the part of a Check that asks for a usable record of a file
// that was replaced.
func (f Files) OriginalDiff(path string) (step.Diff, error) {
	if !f.Exists(originalOf(path).Path) {
		return nil, nil
	}
	return originalOf(path).Diff(f)
}

// Original returns what stood at path before we replaced it: nil if nothing
// did. It returns fs.ErrNotExist if we never replaced it.
func (f Files) Original(path string) ([]byte, error) {
	kept, err := originalOf(path).Read(f)
	return kept.Data, err
}

// PutBack restores the original that Replace saved, if nobody has changed the
// file since. Otherwise it leaves the file, saves the original under another
// name, and reports both with step.Leave. Without a saved original it does
// nothing.
func (f Files) PutBack(ctx context.Context, path string) error {
	kept, err := originalOf(path).Read(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if IsDamaged(err) || err == nil && kept.Lost {
		step.Leave(ctx, path+": the record of what it was before kube-bootstrap replaced it is damaged; restore it from a copy, or remove it if nothing needs it")
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

// leave keeps a file that somebody changed after Replace.
func (f Files) leave(ctx context.Context, path string, kept original) error {
	if kept.Absent {
		step.Leave(ctx, path+": it was changed since kube-bootstrap made it; remove it if nothing needs it")
		return nil
	}
	beside := path + ".before-kube-bootstrap"
	step.Leave(ctx, path+": it was changed since kube-bootstrap replaced it; the file from before is "+beside)
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
