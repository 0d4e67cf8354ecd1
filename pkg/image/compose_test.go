package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
)

// plainTar packs "name=content"; "name->target" is a link, "name/" a directory.
func plainTar(t *testing.T, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		name, data, _ := strings.Cut(m, "=")
		h := tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o755}
		if name, target, ok := strings.Cut(m, "->"); ok {
			h = tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}
		} else if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, data[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// came puts what would have been fetched into files.
func came(t *testing.T, o Origin, parts ...[]byte) Fetched {
	t.Helper()
	f := Fetched{Origin: o, Digest: digest.FromBytes(bytes.Join(parts, nil))}
	for _, data := range parts {
		path := filepath.Join(t.TempDir(), "part")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		f.Paths = append(f.Paths, path)
	}
	return f
}

func TestOverlay(t *testing.T) {
	base := came(t, Origin{}, plainTar(t, "bin->usr/bin", "lib->usr/lib", "usr/bin/mount=debian", "usr/lib/libc.so=old", "usr/lib/gone/a=1",
		"etc/gone=1", "var/run->/run", "usr/sbin/iptables-legacy=1"))
	over := came(t, Origin{}, gzipped(t, plainTar(t, "lib/", "lib/libc.so=new", "sbin/xtables-nft-multi=nft", "sbin/iptables->../usr/sbin/iptables-wrapper",
		"lib/.wh.gone=", "etc/.wh.gone=", "var/run/", "lib64/ld.so->/lib/ld.so")))
	all := map[string]entry{}
	for _, f := range []Fetched{base, over} {
		if err := overlay(all, f.Paths[0]); err != nil {
			t.Fatal(err)
		}
	}
	mergedLinks(all)
	for name, want := range map[string]string{"usr/bin/mount": "debian", "usr/lib/libc.so": "new", "usr/sbin/xtables-nft-multi": "nft"} {
		if got := string(all[name].data); got != want {
			t.Errorf("%s holds %q, not %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "var/run": "/run",
		"usr/sbin/iptables": "/usr/sbin/iptables-wrapper", "usr/lib64/ld.so": "/lib/ld.so"} {
		if got := all[name].header.Linkname; got != want {
			t.Errorf("%s leads to %q, not to %q", name, got, want)
		}
	}
	for _, name := range []string{"usr/lib/gone/a", "etc/gone", "lib/libc.so"} {
		if _, there := all[name]; there {
			t.Errorf("%s is there", name)
		}
	}
}

func TestPackedLayers(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := plainTar(t, "a=b")
	for name, data := range map[string][]byte{"gzip": gzipped(t, want), "zstd": encoder.EncodeAll(want, nil), "plain": want, "nothing": nil} {
		r, err := openPacked(came(t, Origin{}, data).Paths[0])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || data != nil && !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		r.Close()
	}
}

func TestComposeKeepsWhatItTakes(t *testing.T) {
	b := &Builder{Cache: t.TempDir()}
	v, err := For("", Versions{})
	if err != nil {
		t.Fatal(err)
	}
	layer := plainTar(t, "etcd=program")
	// The order of fields and the spaces differ from what kube-bootstrap writes.
	config := []byte(`{"os":"linux",  "architecture":"amd64", "rootfs":{"type":"layers","diff_ids":["` + digest.FromBytes(layer).String() + `"]},"strange":1}`)
	etcd := Image{Name: "etcd", Ref: Ref(v, "etcd")}
	from := came(t, Origin{Name: "etcd", Ref: etcd.Ref}, config, gzipped(t, layer))
	built, err := b.Compose(t.Context(), v, etcd, "amd64", map[string]Fetched{"etcd": from})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := built.OCI.RawConfigFile()
	if err != nil || !bytes.Equal(raw, config) {
		t.Errorf("the config became %s: %v", raw, err)
	}
	layers, err := built.OCI.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	if d, err := layers[0].Digest(); err != nil || d.String() != digest.FromBytes(layer).String() {
		t.Errorf("the layer is %s: %v", d, err)
	}
	if want := etcd.Ref + "@" + from.Digest.String(); built.Parts[0].Origin != want {
		t.Errorf("its origin is %s, not %s", built.Parts[0].Origin, want)
	}
	other := came(t, Origin{Name: "etcd", Ref: etcd.Ref}, config, gzipped(t, plainTar(t, "etcd=another")))
	fresh := &Builder{Cache: t.TempDir()}
	if _, err := fresh.Compose(t.Context(), v, etcd, "amd64", map[string]Fetched{"etcd": other}); err == nil || !strings.Contains(err.Error(), "does not match the config of its image") {
		t.Errorf("a layer that its image does not name: %v", err)
	}
}

func TestComposeHyperkube(t *testing.T) {
	b := &Builder{Cache: t.TempDir()}
	v, err := For("", Versions{})
	if err != nil {
		t.Fatal(err)
	}
	origins := map[string]Fetched{}
	for _, o := range Origins(v, OfficialSites, "amd64") {
		switch {
		case o.Name == "cni":
			origins[o.Name] = came(t, o, gzipped(t, plainTar(t, "./bridge=1", "./host-local=1", "./loopback=1", "./portmap=1", "./dhcp=1")))
		case o.URL != "":
			origins[o.Name] = came(t, o, []byte(o.Name+" itself"))
		default:
			origins[o.Name] = came(t, o, nil, gzipped(t, plainTar(t, "usr/bin/of-"+o.Name+"=1", "go-runner=1")),
				gzipped(t, plainTar(t, "usr/local/bin/"+o.Name+"="+o.Name+" itself")))
		}
	}
	built, err := b.Compose(t.Context(), v, Image{Name: "hyperkube", Ref: Ref(v, "hyperkube")}, "amd64", origins)
	if err != nil {
		t.Fatal(err)
	}
	files := contentOf(t, built.OCI)
	for _, name := range slices.Concat(imagePrograms, filePrograms) {
		if got := files["usr/local/bin/"+name]; got != name+" itself" {
			t.Errorf("%s holds %q", name, got)
		}
	}
	for _, name := range []string{"usr/bin/of-debian-base", "usr/bin/of-kube-proxy", "opt/cni/bin/portmap"} {
		if files[name] != "1" {
			t.Errorf("%s is missing", name)
		}
	}
	for _, name := range []string{"usr/bin/of-kube-scheduler", "go-runner", "opt/cni/bin/dhcp"} {
		if _, there := files[name]; there {
			t.Errorf("%s is there", name)
		}
	}
	if layers, err := built.OCI.Layers(); err != nil || len(layers) != len(built.Parts) || built.Parts[1].Name != "cni" {
		t.Errorf("%d layers, %d parts: each part is a layer (%v)", len(layers), len(built.Parts), err)
	}
}

func contentOf(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	files, archive := map[string]string{}, tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = string(data)
		}
	}
}
