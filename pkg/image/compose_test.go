package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// came puts what would have been fetched into files.
func came(t *testing.T, o OfficialSource, parts ...[]byte) Fetched {
	t.Helper()
	f := Fetched{OfficialSource: o, Digest: digest.FromBytes(bytes.Join(parts, nil))}
	for _, data := range parts {
		f.Paths = append(f.Paths, must.Write(t, filepath.Join(t.TempDir(), "part"), data))
	}
	return f
}

func TestComposeKeepsWhatItTakes(t *testing.T) {
	b := &Builder{Cache: t.TempDir()}
	v, err := For("", Versions{})
	must.NoError(t, err)
	layer := rootfstest.Tar(t, "etcd=program")
	// The order of fields and the spaces differ from what kube-bootstrap writes.
	config := []byte(`{"os":"linux",  "architecture":"amd64", "rootfs":{"type":"layers","diff_ids":["` +
		digest.FromBytes(layer).String() + `"]},"strange":1}`)
	etcd := Image{Name: "etcd", Ref: Ref(v, "etcd")}
	from := came(t, OfficialSource{Name: "etcd", Ref: etcd.Ref}, config, rootfstest.Gzip(t, layer))
	built, err := b.Compose(t.Context(), v, etcd, "amd64", map[string]Fetched{"etcd": from})
	must.NoError(t, err)
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
	other := came(t, OfficialSource{Name: "etcd", Ref: etcd.Ref}, config,
		rootfstest.Gzip(t, rootfstest.Tar(t, "etcd=another")))
	fresh := &Builder{Cache: t.TempDir()}
	if _, err := fresh.Compose(t.Context(), v, etcd, "amd64", map[string]Fetched{"etcd": other}); err == nil ||
		!strings.Contains(err.Error(), "does not match the config of its image") {
		t.Errorf("a layer that its image does not name: %v", err)
	}
}

func TestComposeHyperkube(t *testing.T) {
	b := &Builder{Cache: t.TempDir()}
	v, err := For("", Versions{})
	must.NoError(t, err)
	origins := map[string]Fetched{}
	for _, o := range Origins(v, Catalogue(v, ""), OfficialSites, "amd64") {
		switch {
		case o.Name == "cni":
			origins[o.Name] = came(t, o,
				rootfstest.Gzip(t, rootfstest.Tar(t, "bridge=1", "host-local=1", "loopback=1", "portmap=1", "dhcp=1")))
		case o.URL != "":
			origins[o.Name] = came(t, o, []byte(o.Name+" itself"))
		default:
			origins[o.Name] = came(t, o, nil,
				rootfstest.Gzip(t, rootfstest.Tar(t, "usr/bin/of-"+o.Name+"=1", "go-runner=1")),
				rootfstest.Gzip(t, rootfstest.Tar(t, "usr/local/bin/"+o.Name+"="+o.Name+" itself")))
		}
	}
	built, err := b.Compose(t.Context(), v, Image{Name: "hyperkube", Ref: Ref(v, "hyperkube")}, "amd64", origins)
	must.NoError(t, err)
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
	if layers, err := built.OCI.Layers(); err != nil || len(layers) != len(built.Parts) ||
		built.Parts[1].Name != "cni" {
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
		must.NoError(t, err)
		data, err := io.ReadAll(archive)
		must.NoError(t, err)
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = string(data)
		}
	}
}
