package backup

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const ageMagic = "age-encryption.org/"

// ErrSealed means that no identity opens an encrypted backup.
var ErrSealed = errors.New("it is encrypted, and none of the given identities opens it")

// Read reads a backup to its end and checks each byte. It writes etcd's snapshot to snapshot.
func Read(from io.Reader, identities []age.Identity, snapshot io.Writer) (Contents, error) {
	buffered := bufio.NewReader(from)
	magic, err := buffered.Peek(len(ageMagic))
	if err != nil {
		return Contents{}, fmt.Errorf("it is not a backup: %w", err)
	}
	if string(magic) != ageMagic {
		return decompress(buffered, snapshot)
	}
	if len(identities) == 0 {
		return Contents{}, ErrSealed
	}
	opened, err := age.Decrypt(buffered, identities...)
	if errors.As(err, new(*age.NoIdentityMatchError)) {
		return Contents{}, ErrSealed
	}
	if err != nil {
		return Contents{}, err
	}
	return decompress(opened, snapshot)
}

func decompress(from io.Reader, snapshot io.Writer) (Contents, error) {
	large, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return Contents{}, err
	}
	defer large.Close()
	c, err := unpack(large, snapshot)
	if err != nil {
		return c, err
	}
	// The checksums of zstd and age cover what tar does not read.
	if n, err := io.Copy(io.Discard, large); err != nil || n > 0 {
		return c, errors.Join(errors.New("the file does not end with its archive"), err)
	}
	return c, nil
}

// reader reads the entries of a backup.
type reader struct {
	tar      *tar.Reader
	snapshot *hashed
	entries  []Entry
	parts    int
	files    []host.File
}

func unpack(from io.Reader, snapshot io.Writer) (c Contents, err error) {
	r := reader{tar: tar.NewReader(from), snapshot: newHashed(snapshot)}
	for {
		header, err := r.tar.Next()
		if err != nil {
			return c, incomplete(err)
		}
		data, err := r.read(header)
		if err != nil {
			return c, fmt.Errorf("%s: %w", header.Name, err)
		}
		if header.Name == manifestName {
			return r.end(data)
		}
		if err := r.take(header, data); err != nil {
			return c, fmt.Errorf("%s: %w", header.Name, err)
		}
		r.entries = append(r.entries, entryOf(header, data))
	}
}

func incomplete(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it ends before its manifest")
	}
	return err
}

func (r *reader) read(h *tar.Header) ([]byte, error) {
	if h.Typeflag != tar.TypeReg || h.Size > largestFile {
		return nil, fmt.Errorf("no backup has such an entry: type %q, %d bytes", h.Typeflag, h.Size)
	}
	data := make([]byte, h.Size)
	_, err := io.ReadFull(r.tar, data)
	return data, err
}

// take takes an entry before the manifest.
func (r *reader) take(h *tar.Header, data []byte) error {
	path, isFile := strings.CutPrefix(h.Name, filesPrefix)
	switch {
	case isFile && fs.ValidPath(strings.TrimPrefix(path, "/")) && strings.HasPrefix(path, "/"):
		r.files = append(r.files, host.File{Path: path, Data: data, Mode: h.FileInfo().Mode().Perm()})
		return nil
	case h.Name == partName(r.parts):
		r.parts++
		_, err := r.snapshot.Write(data)
		return err
	}
	return errors.New("no backup has an entry of this name")
}

// end compares the entries with the manifest.
func (r *reader) end(manifest []byte) (c Contents, err error) {
	if err := json.Unmarshal(manifest, &c.Manifest); err != nil {
		return c, fmt.Errorf("%s: %w", manifestName, err)
	}
	if c.Manifest.Format != format {
		return c, fmt.Errorf("it has format %d, and this version of kube-bootstrap reads format %d",
			c.Manifest.Format, format)
	}
	if !slices.Equal(c.Manifest.Entries, r.entries) {
		return c, errors.New("its contents differ from its manifest")
	}
	if err := r.snapshot.check(); err != nil {
		return c, err
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return c, errors.New("it has entries after its manifest")
	}
	c.Files = r.files
	return c, nil
}
