package bundle

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// FuzzOpen feeds the reader with files: whatever it takes for a bundle can be
// verified, checked and read without harm, and nothing passes that is not.
func FuzzOpen(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	path := filepath.Join(f.TempDir(), "bundle")
	f.Fuzz(func(t *testing.T, data []byte) {
		must.Write(t, path, data)
		use(t, path)
	})
}

// FuzzHead does the same behind the compression: the members of the head.
func FuzzHead(f *testing.F) {
	for _, data := range seeds(f) {
		decoder, err := compression.NewDecoder(bytes.NewReader(data), 1)
		must.NoError(f, err)
		plain, err := io.ReadAll(decoder)
		decoder.Close()
		if err != nil {
			continue // a seed that is damaged
		}
		f.Add(plain)
	}
	path := filepath.Join(f.TempDir(), "bundle")
	f.Fuzz(func(t *testing.T, plain []byte) {
		var file bytes.Buffer
		must.NoError(t, compression.Encode(&file, bytes.NewReader(plain), int64(len(plain)), zstd.SpeedFastest))
		must.Write(t, path, file.Bytes())
		use(t, path)
	})
}

func use(t *testing.T, path string) {
	b, err := Open(path)
	if err != nil {
		return
	}
	defer b.Close()
	verified := b.Verify(t.Context())
	b.Report(Wanted{})
	for _, arch := range b.Archs() {
		_ = b.Check(t.Context(), arch)
		archive := b.Archive(t.Context(), b.Manifest.Images, arch).Open()
		_, err := io.Copy(io.Discard, archive)
		archive.Close()
		if verified == nil && b.Manifest.Base == nil && err != nil {
			t.Errorf("verified, and not to be read: %v", err)
		}
	}
}

// seeds are a good bundle and some that are nearly good.
func seeds(f *testing.F) (all [][]byte) {
	f.Helper()
	var small bytes.Buffer
	w := tar.NewWriter(&small)
	for _, m := range []member{{manifestName, []byte(`{"format":2,"blobs":{},"frames":[]}`)},
		{signatureName, []byte(`{"signer":"x","signature":"eA=="}`)}} {
		must.NoError(f, m.write(w))
	}
	must.NoError(f, w.Flush())
	var head bytes.Buffer
	must.NoError(f, compression.EncodeBytes(&head, small.Bytes()))
	good := must.Read(f, writeFor(f, "arm"))
	return [][]byte{good, good[:len(good)/2], flip(good, len(good)/3), head.Bytes()}
}
