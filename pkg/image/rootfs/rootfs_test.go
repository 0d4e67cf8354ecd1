package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func saved(t *testing.T, data []byte) string {
	t.Helper()
	return must.Write(t, filepath.Join(t.TempDir(), "layer"), data)
}

func TestOverlay(t *testing.T) {
	base := saved(t, rootfstest.Tar(t, "bin->usr/bin", "lib->usr/lib", "usr/bin/mount=debian", "usr/lib/libc.so=old",
		"usr/lib/gone/a=1",
		"etc/gone=1", "var/run->/run", "usr/sbin/iptables-legacy=1"))
	over := saved(t, rootfstest.Gzip(t, rootfstest.Tar(t, "lib/", "lib/libc.so=new", "sbin/xtables-nft-multi=nft",
		"sbin/iptables->../usr/sbin/iptables-wrapper",
		"lib/.wh.gone=", "etc/.wh.gone=", "var/run/", "lib64/ld.so->/lib/ld.so")))
	all := Tree{}
	for _, layer := range []string{base, over} {
		must.NoError(t, all.Overlay(layer, func(string) bool { return false }))
	}
	all.LinkMerged()
	for name, want := range map[string]string{
		"usr/bin/mount": "debian", "usr/lib/libc.so": "new", "usr/sbin/xtables-nft-multi": "nft",
	} {
		if got := string(all[name].Data); got != want {
			t.Errorf("%s holds %q, not %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib",
		"lib64": "usr/lib64", "var/run": "/run",
		"usr/sbin/iptables": "/usr/sbin/iptables-wrapper", "usr/lib64/ld.so": "/lib/ld.so"} {
		if got := all[name].Header.Linkname; got != want {
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
	must.NoError(t, err)
	want := rootfstest.Tar(t, "a=b")
	for name, data := range map[string][]byte{
		"gzip": rootfstest.Gzip(t, want), "zstd": encoder.EncodeAll(want, nil), "plain": want, "nothing": nil,
	} {
		var got []byte
		err := readPacked(saved(t, data), func(r io.Reader) (err error) {
			got, err = io.ReadAll(r)
			return err
		})
		if err != nil || data != nil && !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestContent(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	must.Write(t, program, "code")
	c := Content{Files: map[string]string{"usr/bin/nnp": program}, Modes: map[string]int64{"usr/bin/nnp": 0o6755},
		Links: map[string]string{"nnp": "usr/bin/nnp"},
		Texts: map[string][]byte{"etc/passwd": []byte("root")}, Dirs: map[string]int64{"tmp": 0o1777}}
	layer, err := Layer(t.Context(), dir, "name", c)
	must.NoError(t, err)
	packed, err := layer.Uncompressed()
	must.NoError(t, err)
	defer packed.Close()
	modes := map[string]int64{}
	for archive := tar.NewReader(packed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.NoError(t, err)
		modes[h.Name] = h.Mode
	}
	for name, want := range map[string]int64{"usr/bin/nnp": 0o6755, "etc/passwd": 0o644, "tmp/": 0o1777, "nnp": 0o777} {
		if modes[name] != want {
			t.Errorf("%s has mode %o, want %o", name, modes[name], want)
		}
	}
}
