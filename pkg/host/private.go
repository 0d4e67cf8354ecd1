package host

import "os"

// MkdirPrivate is MkdirAll with mode 0700 for dir.
func (f Files) MkdirPrivate(dir string) error {
	if err := f.MkdirAll(dir); err != nil {
		return err
	}
	return os.Chmod(f.Path(dir), 0o700)
}

// IsPrivate reports whether dir is a directory with mode 0700.
func (f Files) IsPrivate(dir string) bool {
	info, err := os.Lstat(f.Path(dir))
	return err == nil && info.IsDir() && info.Mode().Perm() == 0o700
}
