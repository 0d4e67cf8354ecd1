package offline

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// write makes a bundle of the contents at path, in one move.
func write(ctx context.Context, path string, c *contents) error {
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(filepath.Join(dir, "."), 0o755); err != nil {
		return err
	}
	release, err := host.WaitLock(ctx, filepath.Join(dir, "."+name+".lock"), path)
	if err != nil {
		return err
	}
	defer release()
	// By one at a time: what lies there half done is of a run that was killed.
	work := filepath.Join(dir, "."+name+".half")
	if err := errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	groups := c.groups()
	frames, err := c.frames(ctx, work, groups)
	if err != nil {
		return err
	}
	tmp := filepath.Join(work, "bundle")
	if err := c.join(tmp, groups, frames); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// join writes the first frame, those of the groups, and the end.
func (c *contents) join(path string, groups [][]source, frames []string) error {
	var head, end bytes.Buffer
	if err := encodeTo(&end, make([]byte, 2*tarBlock)); err != nil {
		return err
	}
	if err := c.place(groups, frames, int64(end.Len())); err != nil {
		return err
	}
	if err := c.writeHead(&head); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := encodeTo(file, head.Bytes()); err != nil {
		return err
	}
	for _, frame := range frames {
		if err := copyFile(file, frame); err != nil {
			return err
		}
	}
	if _, err := file.Write(end.Bytes()); err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func copyFile(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, file)
	return err
}

// place notes where everything will lie.
func (c *contents) place(groups [][]source, frames []string, fromEnd int64) error {
	c.manifest.Packing = c.packing.name
	c.manifest.Frames = make([]Frame, len(frames))
	for i := len(frames) - 1; i >= 0; i-- {
		sum := digest.SHA256.Digester()
		var size counter
		if err := copyFile(io.MultiWriter(sum.Hash(), &size), frames[i]); err != nil {
			return err
		}
		fromEnd += int64(size)
		c.manifest.Frames[i] = Frame{FromEnd: fromEnd, Packed: int64(size), Sum: sum.Digest()}
		var at int64
		for _, b := range groups[i] {
			c.manifest.Blobs[b.digest] = Blob{Size: b.size, Frame: i, At: at}
			at += memberSize(b.size)
		}
	}
	return nil
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// member is a small file at the beginning of a bundle.
type member struct {
	name string
	data []byte
}

func (c *contents) writeHead(w io.Writer) error {
	tables, err := c.tables()
	if err != nil {
		return err
	}
	c.manifest.Tables = map[string]digest.Digest{}
	for _, t := range tables {
		c.manifest.Tables[t.name] = digest.FromBytes(t.data)
	}
	manifest, err := json.Marshal(c.manifest)
	if err != nil {
		return err
	}
	members := []member{{manifestName, manifest}}
	if c.signer != nil {
		data, err := json.Marshal(sign(c.signer, manifest))
		if err != nil {
			return err
		}
		members = append(members, member{signatureName, data})
	}
	archive := tar.NewWriter(w)
	for _, m := range append(members, tables...) {
		if err := m.write(archive); err != nil {
			return err
		}
	}
	return archive.Flush()
}

// tables are the members by which other tools find the images.
func (c *contents) tables() (all []member, err error) {
	for _, t := range []struct {
		name  string
		value any
	}{
		{ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}},
		{ocispec.ImageIndexFile, c.index},
		{dockerTable, c.manifest.dockerTable()},
	} {
		data, err := json.Marshal(t.value)
		if err != nil {
			return nil, err
		}
		all = append(all, member{t.name, data})
	}
	return all, nil
}

func (m member) write(archive *tar.Writer) error {
	if err := archive.WriteHeader(header(m.name, int64(len(m.data)))); err != nil {
		return err
	}
	_, err := archive.Write(m.data)
	return err
}

func writeJSON(archive *tar.Writer, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return member{name, data}.write(archive)
}
