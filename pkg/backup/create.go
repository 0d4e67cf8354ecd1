package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"
)

// Write writes a backup for recipients to a new file of that path; without recipients it is not encrypted. The file
// gets its name once it has been read again. Until then it has the name of Partial.
func Write(path string, s Source, recipients []age.Recipient) (err error) {
	part := Partial(path, s.Origin.Host)
	file, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	err = writeAndRead(file, s, recipients)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Partial returns the path of the file that a host writes before it becomes the file at path. A host writes one
// backup at a time, so that a run replaces what a killed run has left.
func Partial(path, host string) string {
	return filepath.Join(filepath.Dir(path), ".kube-bootstrap-backup-"+host+".partial")
}

func writeAndRead(file *os.File, s Source, recipients []age.Recipient) error {
	writers, readers := witnessed(recipients)
	if err := encode(file, s, writers); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := Read(file, readers, io.Discard); err != nil {
		return fmt.Errorf("the backup that was just written cannot be read: %w", err)
	}
	return nil
}

// syncDir makes a new name in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
