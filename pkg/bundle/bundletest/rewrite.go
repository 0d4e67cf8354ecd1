package bundletest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Rewrite returns the path of a copy of a bundle in which one frame is changed
// and the manifest contains the digest of the changed frame. It does not use the
// code under test. The first frame contains manifests and configs, the second the
// layers of the first architecture.
func Rewrite(t testing.TB, path string, frame int, change func(plain []byte) []byte) string {
	t.Helper()
	data := must.Read(t, path)
	manifest, frames := readManifest(t, data)
	var parts [][]byte
	for _, f := range frames {
		parts = append(parts, data[int64(len(data))-f.FromEnd:][:f.Packed])
	}
	headSize, last := int64(len(data))-frames[0].FromEnd, frames[len(frames)-1]
	end := data[int64(len(data))-last.FromEnd+last.Packed:]
	parts[frame] = compress(t, change(decompress(t, parts[frame])))

	fromEnd := int64(len(end))
	for i := len(frames) - 1; i >= 0; i-- {
		fromEnd += int64(len(parts[i]))
		frames[i] = frameEntry{fromEnd, int64(len(parts[i])), digest.FromBytes(parts[i])}
	}
	manifest["frames"] = encode(t, frames)
	head := replaceFirst(t, decompress(t, data[:headSize]), encode(t, manifest))
	parts = append(append([][]byte{compress(t, head)}, parts...), end)
	rewritten := filepath.Join(t.TempDir(), "bundle.tar.zst")
	must.NoError(t, os.WriteFile(rewritten, bytes.Join(parts, nil), 0o644))
	return rewritten
}

type frameEntry struct {
	FromEnd int64         `json:"fromEnd"`
	Packed  int64         `json:"packed"`
	Sum     digest.Digest `json:"sum"`
}

// readManifest reads the first member.
func readManifest(t testing.TB, data []byte) (manifest map[string]json.RawMessage, frames []frameEntry) {
	t.Helper()
	archive := tar.NewReader(bytes.NewReader(decompress(t, data)))
	_, err := archive.Next()
	must.NoError(t, err)
	must.NoError(t, json.NewDecoder(archive).Decode(&manifest))
	must.NoError(t, json.Unmarshal(manifest["frames"], &frames))
	return manifest, frames
}

// replaceFirst replaces the content of the first member of an archive without an
// end mark.
func replaceFirst(t testing.TB, plain, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	to, first := tar.NewWriter(&b), true
	err := rootfs.EachEntry(bytes.NewReader(plain), func(_ string, h *tar.Header, data io.Reader) error {
		if first {
			h.Size, data, first = int64(len(content)), bytes.NewReader(content), false
		}
		must.NoError(t, to.WriteHeader(h))
		_, err := io.Copy(to, data)
		return err
	})
	must.NoError(t, errors.Join(err, to.Flush()))
	return b.Bytes()
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	must.NoError(t, err)
	return data
}

func compress(t testing.TB, plain []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	must.NoError(t, err)
	defer encoder.Close()
	return encoder.EncodeAll(plain, nil)
}

func decompress(t testing.TB, data []byte) []byte {
	t.Helper()
	decoder, err := zstd.NewReader(nil)
	must.NoError(t, err)
	defer decoder.Close()
	plain, err := decoder.DecodeAll(data, nil)
	must.NoError(t, err)
	return plain
}
