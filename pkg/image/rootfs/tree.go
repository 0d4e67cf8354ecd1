// Package rootfs reads and writes the file systems of images: trees of files,
// and the layers that contain them.
package rootfs

import (
	"archive/tar"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Entry is one member of a Tree.
type Entry struct {
	Header tar.Header
	Data   []byte
}

// Tree holds the entries of a file system by path, without leading slashes.
type Tree map[string]Entry

// Read returns the entries of a tar that unwanted does not report.
func Read(r io.Reader, unwanted func(name string) bool) (Tree, error) {
	t := Tree{}
	err := EachEntry(r, func(name string, h *tar.Header, content io.Reader) error {
		if name == "" || unwanted(name) {
			return nil
		}
		data, err := io.ReadAll(content)
		t[name] = Entry{Header: *h, Data: data}
		return err
	})
	return t, err
}

// EachEntry calls do for each entry of a tar, with a clean name.
func EachEntry(r io.Reader, do func(name string, h *tar.Header, content io.Reader) error) error {
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(path.Clean("/" + h.Name)[1:], h, archive); err != nil {
			return err
		}
	}
}

// AddFile adds a regular file.
func (t Tree) AddFile(name string, data []byte, mode int64) {
	t[name] = Entry{Header: tar.Header{Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(data))}, Data: data}
}

// AddLink adds a symbolic link.
func (t Tree) AddLink(name, target string) {
	t[name] = Entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}}
}

func (t Tree) addDir(name string, mode int64) {
	t[name] = Entry{Header: tar.Header{Typeflag: tar.TypeDir, Mode: mode}}
}

// Save writes the tree as a tar. Equal trees are equal files.
func (t Tree) Save(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(t.write(file), file.Close())
}

// write writes the entries sorted by name, without times and owners' names,
// after the directories that they lie in.
func (t Tree) write(w io.Writer) error {
	for name := range maps.Clone(t) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := t[dir]; !ok {
				t.addDir(dir, 0o755)
			}
		}
	}
	archive := tar.NewWriter(w)
	// A hard link must follow the file it names.
	for _, links := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(t)) {
			if e := t[name]; (e.Header.Typeflag == tar.TypeLink) == links {
				if err := e.write(archive, name); err != nil {
					return err
				}
			}
		}
	}
	return archive.Close()
}

func (e Entry) write(archive *tar.Writer, name string) error {
	h := tar.Header{Typeflag: e.Header.Typeflag, Name: name, Mode: e.Header.Mode & 0o7777, Uid: e.Header.Uid,
		Gid:  e.Header.Gid,
		Size: int64(len(e.Data)), Linkname: e.Header.Linkname, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		Devmajor: e.Header.Devmajor, Devminor: e.Header.Devminor}
	if h.Typeflag == tar.TypeDir {
		h.Name += "/"
	}
	if h.Typeflag == tar.TypeLink {
		h.Linkname = strings.TrimPrefix(path.Clean("/"+h.Linkname), "/")
	}
	if err := archive.WriteHeader(&h); err != nil {
		return err
	}
	_, err := archive.Write(e.Data)
	return err
}
