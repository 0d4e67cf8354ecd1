package bundle

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// writeApart writes a bundle of two architectures without a common layer.
func writeApart(t *testing.T) string {
	t.Helper()
	v := bundletest.Versions(t)
	b, err := NewBuilder(v, bundletest.ImagesApart(t, v, "amd64", "arm"))
	must.NoError(t, err)
	b.Cache = t.TempDir()
	return writeOf(t, b)
}

// partOf writes the part of a bundle for an architecture, as a host fetches it.
func partOf(t *testing.T, whole, arch string) string {
	t.Helper()
	data := must.Read(t, whole)
	path := filepath.Join(t.TempDir(), "part.tar.zst")
	file, err := os.Create(path)
	must.NoError(t, err)
	defer file.Close()
	for _, s := range opened(t, whole).PartFor(arch) {
		_, err := file.WriteAt(data[s.Offset:s.End()], s.Offset)
		must.NoError(t, err)
	}
	return path
}

func TestAPartHasOneArchitecture(t *testing.T) {
	whole := writeApart(t)
	for _, c := range []struct{ has, lacks string }{{"amd64", "arm"}, {"arm", "amd64"}} {
		path := partOf(t, whole, c.has)
		b := opened(t, path)
		if got := b.Archs(); len(got) != 1 || got[0] != c.has || b.Identity() != opened(t, whole).Identity() {
			t.Errorf("%s: it is for %q, and its manifest is %s", c.has, got, b.Identity())
		}
		must.NoError(t, b.Check(t.Context(), c.has))
		must.NoError(t, b.Verify(t.Context()))
		for _, img := range b.Manifest.Images {
			if _, err := b.Find(img.Ref, c.has); err != nil {
				t.Error(err)
			}
			for _, layer := range img.Platforms[c.has].Layers {
				must.NoError(t, b.copyBlob(io.Discard, layer))
			}
		}
		want := "it is for " + c.has + ", not for " + c.lacks
		_, found := b.Find(b.Manifest.Images[0].Ref, c.lacks)
		for _, err := range []error{
			b.Check(t.Context(), c.lacks), b.CheckImages(t.Context(), b.Manifest.Images, c.lacks), found,
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		if missing := b.Report(Wanted{Archs: []string{c.lacks}}).Missing; len(missing) != 1 ||
			missing[0] != "everything for "+c.lacks {
			t.Errorf("missing: %q", missing)
		}
	}
}

func TestAPartIsSmaller(t *testing.T) {
	whole := writeApart(t)
	b := opened(t, whole)
	var size int64
	for _, s := range b.PartFor("arm") {
		size += s.Size
	}
	if frame := b.Manifest.Frames[b.Manifest.framesOf("amd64")[1]]; size != b.size-frame.CompressedSize {
		t.Errorf("the part has %d of %d bytes, without a frame of %d", size, b.size, frame.CompressedSize)
	}
}

// TestAHoleMustBeEmpty: otherwise damage could pass for another architecture's frame.
func TestAHoleMustBeEmpty(t *testing.T) {
	path := partOf(t, writeApart(t), "arm")
	b := opened(t, path)
	hole := b.section(b.Manifest.framesOf("amd64")[1])
	data := must.Read(t, path)
	at := b.size - b.Manifest.Frames[b.Manifest.framesOf("amd64")[1]].OffsetFromEnd + hole.Size()/2
	data[at] = 1
	must.NoError(t, os.WriteFile(path, data, 0o600))
	if err := verified(t.Context(), path); err == nil || !strings.Contains(err.Error(), "cut short or damaged") {
		t.Errorf("got %v", err)
	}
}

func TestOpenHead(t *testing.T) {
	path := writeSmall(t)
	data := must.Read(t, path)
	whole := opened(t, path)
	headEnd := whole.size - whole.Manifest.Frames[0].OffsetFromEnd
	b, err := OpenHead("of 10.0.0.1:6444", bytes.NewReader(data[:headEnd]), int64(len(data)))
	must.NoError(t, err)
	if b.Identity() != whole.Identity() || len(b.Archs()) != 2 {
		t.Errorf("%s for %q", b.Identity(), b.Archs())
	}
	if err := b.copyBlob(io.Discard, b.Manifest.Images[0].Index); err == nil ||
		!strings.Contains(err.Error(), "only the head") {
		t.Errorf("a blob of it: %v", err)
	}
	for _, cut := range [][]byte{nil, data[:headEnd/2], []byte("<html>")} {
		if _, err := OpenHead("of 10.0.0.1:6444", bytes.NewReader(cut), int64(len(data))); err == nil ||
			!strings.Contains(err.Error(), "bundle of 10.0.0.1:6444: ") {
			t.Errorf("%d bytes: %v", len(cut), err)
		}
	}
}

// TestASharedLayer is in the frame of the first architecture, which the others then need too.
func TestASharedLayer(t *testing.T) {
	b := opened(t, partOf(t, writeSmall(t), "arm"))
	must.NoError(t, b.Check(t.Context(), "arm"))
	must.NoError(t, b.Verify(t.Context()))
}
