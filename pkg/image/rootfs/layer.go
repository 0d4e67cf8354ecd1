package rootfs

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

// fileLayer is an uncompressed layer in a file: a bundle compresses all
// layers together.
type fileLayer struct {
	path string
	hash v1.Hash
	size int64
}

// OpenLayer opens a finished layer of the cache. Its digest is saved next to
// it, because hashing all layers again would dominate the run time.
func OpenLayer(path string) (v1.Layer, error) {
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

// Content lists the files of a layer that this program creates. All keys are
// paths in the image.
type Content struct {
	Files map[string]string // path on this machine
	Links map[string]string // target of the link
	Texts map[string][]byte `json:",omitempty"` // content of the file, which is not executable
	Dirs  map[string]int64  `json:",omitempty"` // mode of the directory
	Modes map[string]int64  `json:",omitempty"` // mode of an entry of Files, if not 0755
}

// Layer writes a content as a tar into the cache, under a unique name.
func Layer(ctx context.Context, dir, name string, c Content) (v1.Layer, error) {
	return CachedLayer(ctx, dir, name, layerFile, func(out string) error {
		t, err := c.tree()
		if err != nil {
			return err
		}
		return t.Save(out)
	})
}

const layerFile = "layer.tar"

// CachedLayer returns the layer in a file of a part of the cache, which save writes
// if it is missing.
func CachedLayer(ctx context.Context, dir, name, file string, save func(path string) error) (v1.Layer, error) {
	part, err := cache.Get(ctx, dir, name, func(tmp string) error { return save(filepath.Join(tmp, file)) })
	if err != nil {
		return nil, err
	}
	return OpenLayer(filepath.Join(part, file))
}

func (c Content) tree() (Tree, error) {
	t := Tree{}
	for name, path := range c.Files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		t.AddFile(name, data, cmp.Or(c.Modes[name], 0o755))
	}
	for name, data := range c.Texts {
		t.AddFile(name, data, 0o644)
	}
	for name, mode := range c.Dirs {
		t.addDir(name, mode)
	}
	for name, target := range c.Links {
		t.AddLink(name, target)
	}
	return t, nil
}
