package image

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// fileLayer is an uncompressed layer in a file: a bundle compresses all
// layers together.
type fileLayer struct {
	path string
	hash v1.Hash
	size int64
}

// openLayer opens a finished layer of the cache. Its digest is saved next to
// it, because hashing all layers again would dominate the run time.
func openLayer(path string) (v1.Layer, error) {
	var noted struct {
		Hash v1.Hash
		Size int64
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path + ".digest")
	if err == nil && json.Unmarshal(data, &noted) == nil && noted.Size == info.Size() {
		return fileLayer{path, noted.Hash, noted.Size}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if noted.Hash, noted.Size, err = v1.SHA256(file); err != nil {
		return nil, err
	}
	if data, err = json.Marshal(noted); err != nil {
		return nil, err
	}
	return fileLayer{path, noted.Hash, noted.Size}, os.WriteFile(path+".digest", data, 0o644)
}

func (l fileLayer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l fileLayer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l fileLayer) Compressed() (io.ReadCloser, error)   { return os.Open(l.path) }
func (l fileLayer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
func (l fileLayer) Size() (int64, error)                 { return l.size, nil }
func (l fileLayer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }

// content lists the files of a layer that this program creates. All keys are
// paths in the image.
type content struct {
	Files map[string]string // path on this machine
	Links map[string]string // target of the link
	Texts map[string][]byte `json:",omitempty"` // content of the file, which is not executable
	Dirs  map[string]int64  `json:",omitempty"` // mode of the directory
	Modes map[string]int64  `json:",omitempty"` // mode of an entry of Files, if not 0755
}

// layer writes a content as a tar into the cache, under a unique name.
func (b *Builder) layer(ctx context.Context, name string, c content) (v1.Layer, error) {
	dir, err := Cached(ctx, b.Cache, name, func(dir string) error { return c.pack(filepath.Join(dir, "layer.tar")) })
	if err != nil {
		return nil, err
	}
	return openLayer(filepath.Join(dir, "layer.tar"))
}

func (c content) pack(out string) error {
	all := map[string]entry{}
	for name, path := range c.Files {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		addFile(all, name, data, cmp.Or(c.Modes[name], 0o755))
	}
	for name, data := range c.Texts {
		addFile(all, name, data, 0o644)
	}
	for name, mode := range c.Dirs {
		all[name] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: mode}}
	}
	for name, target := range c.Links {
		addLink(all, name, target)
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := writeEntries(file, all); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

func writeFrom(path string, r io.Reader) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, r); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
