package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// raw packs one tar member without an end mark.
func raw(t testing.TB, h *tar.Header, data string) []byte {
	t.Helper()
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	must.NoError(t, w.WriteHeader(h))
	if _, err := w.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	must.NoError(t, w.Flush())
	return plain.Bytes()
}

func packed(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	must.NoError(t, compression.EncodeBytes(&b, plain))
	return b.Bytes()
}

// frame compresses one tar member without an end mark.
func frame(t testing.TB, h *tar.Header, data string) []byte {
	t.Helper()
	return packed(t, raw(t, h, data))
}

// parts cuts a bundle into its head, its first frame, and the rest.
func parts(t *testing.T, path string) (head, first, rest []byte) {
	t.Helper()
	f := opened(t, path).Manifest.Frames[0]
	data := must.Read(t, path)
	at := int64(len(data)) - f.OffsetFromEnd
	return data[:at], data[at : at+f.CompressedSize], data[at+f.CompressedSize:]
}

// headOf reads the members of the head.
func headOf(t *testing.T, path string) (all []member) {
	t.Helper()
	head, _, _ := parts(t, path)
	decoder, err := compression.NewDecoder(bytes.NewReader(head), 1)
	must.NoError(t, err)
	defer decoder.Close()
	archive := tar.NewReader(decoder)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must.NoError(t, err)
		data, err := io.ReadAll(archive)
		must.NoError(t, err)
		all = append(all, member{h.Name, data})
	}
}

// withHead writes the bundle with another head.
func withHead(t *testing.T, path string, members []member) []byte {
	t.Helper()
	var head []byte
	for _, m := range members {
		head = append(head, frame(t, header(m.name, int64(len(m.data))), string(m.data))...)
	}
	_, first, rest := parts(t, path)
	return bytes.Join([][]byte{head, first, rest}, nil)
}

// changed is the bundle with other content of one member of its head; a nil
// content leaves the member out.
func changed(t *testing.T, path, name string, change func([]byte) []byte) []byte {
	t.Helper()
	var members []member
	for _, m := range headOf(t, path) {
		if m.name == name {
			m.data = change(m.data)
		}
		if m.data != nil {
			members = append(members, m)
		}
	}
	return withHead(t, path, members)
}

func save(t *testing.T, data []byte) string {
	t.Helper()
	return must.Write(t, filepath.Join(t.TempDir(), "bundle.tar.zst"), data)
}

func wantDamage(t *testing.T, path, want string, options ...Option) {
	t.Helper()
	err := verified(t.Context(), path, options...)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) &&
		!os.IsNotExist(err) {
		t.Errorf("got %v, want %q and the path", err, want)
	}
}

func flip(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 0x40
	return data
}

func TestDamage(t *testing.T) {
	good := writeSmall(t)
	head, first, rest := parts(t, good)
	whole := must.Read(t, good)
	insert := func(f []byte) []byte { return bytes.Join([][]byte{head, f, first, rest}, nil) }
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a bundle"},
		{"text", []byte("hello, this is no archive at all"), "not a bundle"},
		{"other archive", frame(t, header("hello", 2), "hi"), `begins with "hello"`},
		{"huge manifest", frame(t, header(manifestName, ManifestLimit+1), strings.Repeat(" ", ManifestLimit+1)),
			"more than the"},
		{"unknown field", frame(t, header(manifestName, 14), `{"surprise":1}`),
			"unknown field \"surprise\"; use the kube-bootstrap that made the bundle, or create it again"},
		{"other format", frame(t, header(manifestName, 12), `{"format":9}`), "format 9"},
		{"cut short", whole[:len(whole)-200], "cut short or damaged"},
		{"cut in half", whole[:len(whole)/2], "cut short or damaged"},
		{"end cut off", whole[:len(whole)-3], "damaged"},
		{"flipped in a blob", flip(whole, len(head)+len(first)/2), "damaged"},
		{"flipped in a layer", flip(whole, len(head)+len(first)+len(rest)/2), "damaged"},
		{"flipped in the head", flip(whole, len(head)/2), "damaged"},
		{"flipped in the index", changed(t, good, "index.json", func(b []byte) []byte {
			return flip(b, 200)
		}), `"index.json": its content does not match its digest`},
		{"flipped in the table", changed(t, good, dockerManifest, func(b []byte) []byte {
			return flip(b, 90)
		}), "does not match its digest"},
		{"no index", changed(t, good, "index.json", func([]byte) []byte { return nil }), "index.json is missing"},
		{"something behind", append(bytes.Clone(whole), frame(t, header("extra", 1), "x")...), "damaged"},
		{"something before", append(frame(t, header("extra", 1), "x"), whole...), "it begins with"},
		{"absolute path", insert(frame(t, header("/etc/passwd", 1), "x")), "its path is absolute"},
		{"path outside", insert(frame(t, header("blobs/../../x", 1), "x")), "its path leaves the bundle"},
		{"stray member", insert(frame(t, header("extra", 1), "x")), "does not belong"},
		{"frame twice", insert(first), "does not belong"},
		{"missing frame", bytes.Join([][]byte{head, rest}, nil), "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) { wantDamage(t, save(t, c.data), c.want) })
	}
}

// TestCrafted: somebody changed a frame and corrected its digest.
func TestCrafted(t *testing.T) {
	good := writeSmall(t)
	link := &tar.Header{
		Typeflag: tar.TypeSymlink, Name: "blobs/sha256/x", Linkname: "/etc/shadow", Format: tar.FormatUSTAR,
	}
	hard := &tar.Header{Typeflag: tar.TypeLink, Name: "blobs/sha256/x", Linkname: "index.json", Format: tar.FormatUSTAR}
	directory := &tar.Header{Typeflag: tar.TypeDir, Name: "blobs/", Format: tar.FormatUSTAR}
	before := func(h *tar.Header, data string) func([]byte) []byte {
		return func(plain []byte) []byte { return append(raw(t, h, data), plain...) }
	}
	behind := func(more []byte) func([]byte) []byte {
		return func(plain []byte) []byte { return append(bytes.Clone(plain), more...) }
	}
	firstSize := func(plain []byte) int64 {
		h, err := tar.NewReader(bytes.NewReader(plain)).Next()
		must.NoError(t, err)
		return memberSize(h.Size)
	}
	for _, c := range []struct {
		name   string
		change func(plain []byte) []byte
		want   string
	}{
		{"nothing", func(plain []byte) []byte { return plain }, ""},
		{"symbolic link", before(link, ""), "it is a link"},
		{"hard link", before(hard, ""), "it is a link"},
		{"directory", before(directory, ""), "not a plain file"},
		{"absolute path", before(header("/etc/passwd", 1), "x"), "its path is absolute"},
		{"path outside", before(header("blobs/sha256/../../../x", 1), "x"), "its path leaves the bundle"},
		{"stray member", before(header("extra", 1), "x"), "does not belong"},
		{"stray blob", behind(raw(t, header("blobs/sha256/"+digest.FromString("x").Encoded(), 1), "x")),
			"does not belong"},
		{"zeros that the size does not tell of", behind(make([]byte, 64<<20)),
			"an end-of-archive mark precedes the end of the frame"},
		{"member that the size does not tell of", behind(raw(t, header("bomb", 64<<20), strings.Repeat("x", 64<<20))),
			"does not belong"},
		{"member removed", func(plain []byte) []byte { return plain[firstSize(plain):] }, "does not belong"},
		{"last member removed", func(plain []byte) []byte { return plain[:firstSize(plain)] }, "is missing"},
		{"member twice", func(plain []byte) []byte {
			return append(bytes.Clone(plain), plain[:firstSize(plain)]...)
		}, "twice"},
		{"other content", func(plain []byte) []byte { return flip(plain, tarBlock+8) }, "does not match its digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := bundletest.Rewrite(t, good, 0, c.change)
			if c.want != "" {
				wantDamage(t, path, c.want)
			} else if err := verified(t.Context(), path); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestManifestThatPointsOutside(t *testing.T) {
	good := opened(t, writeSmall(t))
	for name, spoil := range map[string]func(*Manifest){
		"oversize blob":   func(m *Manifest) { eachBlob(m, func(b *Blob) { b.Size = BlobLimit + 1 }) },
		"negative size":   func(m *Manifest) { eachBlob(m, func(b *Blob) { b.Size = -1 }) },
		"negative place":  func(m *Manifest) { eachBlob(m, func(b *Blob) { b.Offset = -1 }) },
		"no such frame":   func(m *Manifest) { eachBlob(m, func(b *Blob) { b.Frame = 9 }) },
		"negative frame":  func(m *Manifest) { eachBlob(m, func(b *Blob) { b.Frame = -1 }) },
		"base of none":    func(m *Manifest) { eachBlob(m, func(b *Blob) { b.InBase = true }) },
		"far offset":      func(m *Manifest) { m.Frames[0].OffsetFromEnd = 1 << 40 },
		"gap":             func(m *Manifest) { m.Frames[0].CompressedSize-- },
		"frame of nobody": func(m *Manifest) { m.Frames[1].Digest = "md5:x" },
		"no blobs":        func(m *Manifest) { m.Blobs = nil },
		"plugin path":     func(m *Manifest) { m.Plugins["amd64"].Files["../../evil"] = m.Images[0].Index },
		"plugin layer":    func(m *Manifest) { m.Plugins["amd64"] = Plugins{Layer: digest.FromString("x")} },
	} {
		t.Run(name, func(t *testing.T) {
			var b Bundle // all that are opened share one manifest
			must.NoError(t, b.parse(good.raw, good.size))
			spoil(&b.Manifest)
			if err := b.Manifest.validate(good.size); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func eachBlob(m *Manifest, change func(*Blob)) {
	for d, b := range m.Blobs {
		change(&b)
		m.Blobs[d] = b
	}
}

func TestNoBundleSaysWhatToDo(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none"))
	if err == nil || !strings.Contains(err.Error(), "kube-bootstrap offline build") {
		t.Errorf("got %v", err)
	}
}

// TestCheckSeesAChange: what was verified is verified again after the file has changed.
func TestCheckSeesAChange(t *testing.T) {
	path := writeFor(t, "amd64")
	b := opened(t, path, WithBroadcast(&Broadcast{}))
	for range 2 {
		must.NoError(t, b.Check(t.Context(), "amd64"))
	}
	data := must.Read(t, path)
	last := b.Manifest.Frames[len(b.Manifest.Frames)-1]
	data[int64(len(data))-last.OffsetFromEnd+last.CompressedSize/2] ^= 1
	time.Sleep(20 * time.Millisecond) // the clock of the file system is coarse
	must.NoError(t, os.WriteFile(path, data, 0o600))
	if err := b.Check(t.Context(), "amd64"); err == nil || !strings.Contains(err.Error(), "is cut short or damaged") {
		t.Errorf("got %v", err)
	}
}
