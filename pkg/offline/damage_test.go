package offline

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// frame compresses one tar member without an end mark.
func frame(t *testing.T, h *tar.Header, data string) []byte {
	t.Helper()
	var plain, packed bytes.Buffer
	w := tar.NewWriter(&plain)
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := encodeTo(&packed, plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// parts cuts a bundle into its head, its first blob's frame, and the rest.
func parts(t *testing.T, path string) (head, first, rest []byte, blob Blob) {
	t.Helper()
	b := opened(t, path)
	for _, one := range b.Blobs {
		if one.FromEnd > blob.FromEnd {
			blob = one
		}
	}
	data := read(t, path)
	at := int64(len(data)) - blob.FromEnd
	return data[:at], data[at : at+blob.Packed], data[at+blob.Packed:], blob
}

func TestDamage(t *testing.T) {
	good := writeSmall(t)
	head, first, rest, _ := parts(t, good)
	whole := read(t, good)
	flipped := bytes.Clone(whole)
	flipped[len(head)+len(first)/2] ^= 0x40
	link := &tar.Header{Typeflag: tar.TypeSymlink, Name: "blobs/sha256/x", Linkname: "/etc/shadow", Format: tar.FormatUSTAR}
	hard := &tar.Header{Typeflag: tar.TypeLink, Name: "blobs/sha256/x", Linkname: "index.json", Format: tar.FormatUSTAR}
	directory := &tar.Header{Typeflag: tar.TypeDir, Name: "blobs/", Format: tar.FormatUSTAR}
	insert := func(f []byte) []byte { return bytes.Join([][]byte{head, f, first, rest}, nil) }
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a bundle"},
		{"text", []byte("hello, this is no archive at all"), "not a bundle"},
		{"other archive", frame(t, header("hello", 2), "hi"), `begins with "hello"`},
		{"huge manifest", frame(t, header(manifestName, manifestLimit+1), strings.Repeat(" ", manifestLimit+1)), "more than the"},
		{"unknown field", frame(t, header(manifestName, 13), `{"surprise":1}`[:13]), "read " + manifestName},
		{"other format", frame(t, header(manifestName, 12), `{"format":9}`), "format 9"},
		{"cut short", whole[:len(whole)-200], "cut short or damaged"},
		{"cut in half", whole[:len(whole)/2], "cut short or damaged"},
		{"flipped bit", flipped, "damaged"},
		{"absolute path", insert(frame(t, header("/etc/passwd", 1), "x")), "its path is absolute"},
		{"path outside", insert(frame(t, header("blobs/../../x", 1), "x")), "its path leaves the bundle"},
		{"symbolic link", insert(frame(t, link, "")), "it is a link"},
		{"hard link", insert(frame(t, hard, "")), "it is a link"},
		{"directory", insert(frame(t, directory, "")), "not a plain file"},
		{"stray member", insert(frame(t, header("extra", 1), "x")), "does not belong"},
		{"member twice", insert(first), "twice"},
		{"missing blob", bytes.Join([][]byte{head, rest}, nil), "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bundle.tar.zst")
			if err := os.WriteFile(path, c.data, 0o644); err != nil {
				t.Fatal(err)
			}
			err := verified(t.Context(), path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) && !os.IsNotExist(err) {
				t.Errorf("got %v, want %q and the path", err, c.want)
			}
		})
	}
}

func TestOtherContentUnderADigest(t *testing.T) {
	good := writeSmall(t)
	b := opened(t, good)
	head, _, rest, blob := parts(t, good)
	for d, one := range b.Blobs {
		if one != blob {
			continue
		}
		evil := frame(t, header(blobName(d), one.Size), strings.Repeat("x", int(one.Size)))
		path := filepath.Join(t.TempDir(), "bundle.tar.zst")
		if err := os.WriteFile(path, bytes.Join([][]byte{head, evil, rest}, nil), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := verified(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not what its digest says") {
			t.Errorf("got %v", err)
		}
	}
}

func TestManifestThatPointsOutside(t *testing.T) {
	good := writeSmall(t)
	b := opened(t, good)
	for name, spoil := range map[string]func(*Manifest){
		"oversize blob": func(m *Manifest) { eachBlob(m, func(b *Blob) { b.Size = blobLimit + 1 }) },
		"negative size": func(m *Manifest) { eachBlob(m, func(b *Blob) { b.Size = -1 }) },
		"far offset":    func(m *Manifest) { eachBlob(m, func(b *Blob) { b.FromEnd = 1 << 40 }) },
		"no blobs":      func(m *Manifest) { m.Blobs = nil },
		"plugin path": func(m *Manifest) {
			p := m.Plugins["amd64"]
			p.Files["../../evil"] = p.Layer
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m Manifest
			data, _ := json.Marshal(b.Manifest)
			if err := json.Unmarshal(data, &m); err != nil {
				t.Fatal(err)
			}
			spoil(&m)
			if err := m.validate(b.size); err == nil {
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
