package rootfs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

// fileLayer is not compressed, because a bundle compresses all layers together.
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

// Content lists the files of a layer by their paths in the image.
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

// CachedLayer returns the layer in a file of a part, which save writes if it is missing.
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

func readPacked(path string, read func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return Unpacked(file, read)
}

// Unpacked calls read with data that was compressed by gzip or zstd, or not at all.
func Unpacked(packed io.Reader, read func(plain io.Reader) error) error {
	r := bufio.NewReaderSize(packed, 1<<20)
	begin, _ := r.Peek(4) // shorter data is not compressed
	switch {
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		plain, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		return read(plain)
	case bytes.HasPrefix(begin, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		plain, err := zstd.NewReader(r)
		if err != nil {
			return err
		}
		defer plain.Close()
		return read(plain)
	}
	return read(r)
}

// Unpack decompresses a layer into the cache and verifies its diff ID.
func Unpack(ctx context.Context, dir, layer string, id v1.Hash) (v1.Layer, error) {
	return CachedLayer(ctx, dir, "layer-pulled-"+id.Hex, layerFile, func(out string) error {
		check := digest.Digest(id.String()).Verifier()
		save := func(plain io.Reader) error { return cache.Save(out, io.TeeReader(plain, check)) }
		if err := readPacked(layer, save); err != nil {
			return err
		}
		if !check.Verified() {
			return errors.New("its content does not match the config of its image")
		}
		return nil
	})
}

// ExtractLast copies a file from the last of the compressed layers that contains it.
func ExtractLast(layers []string, name, out string) error {
	for _, layer := range slices.Backward(layers) {
		found, err := Extract(layer, map[string]string{name: out})
		if err != nil || found == 1 {
			return err
		}
	}
	return fmt.Errorf("there is no /%s in the image", name)
}

// Extract copies files from a compressed tar by name, and returns how many it found.
func Extract(layer string, files map[string]string) (found int, err error) {
	err = eachMember(layer, func(name string, h *tar.Header, r io.Reader) error {
		out, ok := files[name]
		if !ok || h.Typeflag != tar.TypeReg {
			return nil
		}
		found++
		return cache.Save(out, r)
	})
	return found, err
}

func eachMember(file string, do func(name string, h *tar.Header, content io.Reader) error) error {
	return readPacked(file, func(plain io.Reader) error { return EachEntry(plain, do) })
}
