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

// originalDir contains the records of the files that were replaced.
const originalDir = StateDir + "/original"

// UserFile is a file of the user that kube-bootstrap replaces.
type UserFile struct {
	files Files
	path  string
}

// UserFile returns the file of the user at path.
func (f Files) UserFile(path string) UserFile { return UserFile{f, path} }

// original is the saved state of a file before Replace.
type original struct {
	access
	Link   string `json:"link,omitempty"` // target of the symbolic link that the file was
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

func (u UserFile) record() Record[original] {
	return Record[original]{Path: filepath.Join(originalDir, u.path) + ".json", Valid: original.valid}
}

func (u UserFile) access(fresh access) (access, error) { return accessTo(u.files.Path(u.path), fresh) }

// Replace writes data to the file. The first Replace saves the original for PutBack. The
// file keeps its mode and owner, because it may contain a password. It gets the given mode
// if it does not exist, or if mode grants nothing to group and others. A file takes the
// place of a symbolic link, whose target may be read-only, or serve other programs too.
func (u UserFile) Replace(data []byte, mode os.FileMode) error {
	kept, err := u.record().Read(u.files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kept, err = u.now()
	case IsDamaged(err):
		kept, err = original{Lost: true}, nil
	}
	if err != nil {
		return err
	}
	kept.Ours = data
	if err := u.record().Write(u.files, kept); err != nil {
		return err
	}
	return u.write(data, mode)
}

// Missing lists the changes that Replace would make. It compares a mode only if mode
// grants nothing to group and others, because Replace keeps the user's mode otherwise.
func (u UserFile) Missing(data []byte, mode os.FileMode) ([]string, error) {
	if mode&0o077 != 0 && u.files.Exists(u.path) {
		mode = u.files.mode(u.path)
	}
	return u.files.Missing([]File{{Path: u.path, Data: data, Mode: mode}})
}

// write writes data with the mode and the owner that Replace states.
func (u UserFile) write(data []byte, mode os.FileMode) error {
	may, err := u.access(access{Mode: mode})
	if err != nil {
		return err
	}
	if mode&0o077 == 0 {
		may.Mode = mode
	}
	return u.files.writeAs(u.path, bytes.NewReader(data), may)
}

// Return writes data and forgets the original, because the file belongs to the user again:
// the user has changed it since Replace, and data is the file without our changes. The
// file keeps its mode and owner as in Replace.
func (u UserFile) Return(ctx context.Context, data []byte, mode os.FileMode) error {
	kept, err := u.record().Read(u.files)
	if err != nil && !Lost(err) {
		return err
	}
	if kept.Link != "" {
		step.Leave(ctx, u.path+": it was a symbolic link to "+kept.Link+
			", but it was changed since kube-bootstrap replaced it; it is now a file")
	}
	if err := u.write(data, mode); err != nil {
		return err
	}
	return u.Forget()
}

// now returns the file as the original that Replace saves.
func (u UserFile) now() (original, error) {
	link, err := u.files.LinkTarget(u.path)
	if err != nil {
		return original{}, err
	}
	data, err := u.files.Read(u.path)
	if errors.Is(err, fs.ErrNotExist) {
		return original{Link: link, Absent: true}, nil
	}
	if err != nil {
		return original{}, err
	}
	may, err := u.access(access{})
	return original{Link: link, access: may, Data: data}, err
}

// SaveOriginal saves data as the original if the record was lost. nil means that no file existed.
func (u UserFile) SaveOriginal(data []byte) error {
	ours, err := u.files.Read(u.path)
	if err != nil {
		return err
	}
	may, err := u.access(access{})
	if err != nil {
		return err
	}
	return u.record().Write(u.files, original{access: may, Absent: data == nil, Data: data, Ours: ours})
}

// Diff is the part of a Check that verifies the record of a replaced file.
func (u UserFile) Diff() (step.Diff, error) { return u.record().DiffIfSaved(u.files) }

// Original returns the content before the first Replace, nil if there was no file, or
// fs.ErrNotExist if the file was never replaced.
func (u UserFile) Original() ([]byte, error) {
	kept, err := u.record().Read(u.files)
	return kept.Data, err
}

// Ours returns the content that Replace last wrote, or fs.ErrNotExist.
func (u UserFile) Ours() ([]byte, error) {
	kept, err := u.record().Read(u.files)
	return kept.Ours, err
}

// PutBack restores the original that Replace saved, if any, and if the file is unchanged
// since. Otherwise it saves the original under another name and reports step.Leave.
func (u UserFile) PutBack(ctx context.Context) error {
	kept, err := u.record().Read(u.files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if IsDamaged(err) || err == nil && kept.Lost {
		step.Leave(ctx, u.path+
			": the saved original of this file is damaged; restore the file from a backup, or remove it if nothing "+
			"needs it")
		return u.Forget()
	}
	if err != nil {
		return err
	}
	now, err := u.now()
	if err != nil {
		return err
	}
	if now.restores(kept) || bytes.Equal(now.Data, kept.Ours) {
		err = u.restore(kept)
	} else {
		err = u.leave(ctx, kept)
	}
	if err != nil {
		return err
	}
	return u.Forget()
}

// restores reports whether the file is the original again.
func (o original) restores(kept original) bool {
	if o.Link != "" {
		return o.Link == kept.Link
	}
	return kept.Absent && o.Absent || !kept.Absent && bytes.Equal(o.Data, kept.Data)
}

// leave keeps a file that was changed after Replace.
func (u UserFile) leave(ctx context.Context, kept original) error {
	switch {
	case kept.Link != "":
		step.Leave(ctx, u.path+": it was changed since kube-bootstrap replaced it; it was a symbolic link to "+
			kept.Link)
		return nil
	case kept.Absent:
		step.Leave(ctx, u.path+": it was changed since kube-bootstrap created it; remove it if nothing needs it")
		return nil
	}
	beside := u.path + ".before-kube-bootstrap"
	step.Leave(ctx, u.path+": it was changed since kube-bootstrap replaced it; the original is "+beside)
	return u.files.writeAs(beside, bytes.NewReader(kept.Data), kept.access)
}

// Restore restores the original, whatever the file contains now. The caller
// has verified that only changes by kube-bootstrap are lost.
func (u UserFile) Restore() error {
	kept, err := u.record().Read(u.files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := u.restore(kept); err != nil {
		return err
	}
	return u.Forget()
}

func (u UserFile) restore(kept original) error {
	switch {
	case kept.Link != "":
		return u.files.Symlink(u.path, kept.Link)
	case kept.Absent:
		return u.files.Remove(u.path)
	}
	return u.files.writeAs(u.path, bytes.NewReader(kept.Data), kept.access)
}

// Forget removes the saved original, because the file belongs to the user again, and the
// temporary file of an interrupted write.
func (u UserFile) Forget() error {
	if err := u.files.RemoveHalfWritten(u.path); err != nil {
		return err
	}
	return u.files.Remove(u.record().Path)
}

// ReplacedFiles lists the files whose original Replace has saved.
func ReplacedFiles(files Files) (paths []string) {
	dir := files.Path(originalDir)
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutPrefix(path, dir); ok && err == nil && d.Type().IsRegular() &&
			strings.HasSuffix(name, ".json") {
			paths = append(paths, strings.TrimSuffix(name, ".json"))
		}
		return nil
	})
	return paths
}
