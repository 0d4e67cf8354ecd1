package rootfs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

// readPacked calls read with the content of a file that is compressed by gzip or
// zstd, or not at all.
func readPacked(path string, read func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<20)
	begin, _ := r.Peek(4) // a shorter file is not compressed
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

// ExtractLast copies a file from the compressed layers of an image. The last
// layer that contains it counts.
func ExtractLast(layers []string, name, out string) error {
	for _, layer := range slices.Backward(layers) {
		found, err := Extract(layer, map[string]string{name: out})
		if err != nil || found == 1 {
			return err
		}
	}
	return fmt.Errorf("there is no /%s in the image", name)
}

// Extract copies files from a compressed tar, by their names, and returns how
// many it found.
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

// eachMember calls do for each entry of a compressed tar, with a clean name.
func eachMember(file string, do func(name string, h *tar.Header, content io.Reader) error) error {
	return readPacked(file, func(plain io.Reader) error { return EachEntry(plain, do) })
}
