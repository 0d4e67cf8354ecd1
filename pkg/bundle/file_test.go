package bundle

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestCopyFileTakesTheUpperLayer(t *testing.T) {
	v := bundletest.Versions(t)
	img := image.Catalogue(v, "")[0]
	lower, upper := rootfstest.Tar(t, "usr/bin/a=lower", "usr/bin/b=of b"),
		rootfstest.Tar(t, "usr/bin/a=upper", "usr/bin/c->a", "bin/d->/usr/bin/c", "usr/bin/e->../../../usr/bin/b",
			"bin/loop->loop")
	b, err := NewBuilder(v, []image.Built{bundletest.Image(t, img, "amd64", lower, upper)})
	must.NoError(t, err)
	path := filepath.Join(t.TempDir(), "bundle")
	must.NoError(t, b.Write(t.Context(), path))
	for name, want := range map[string]string{
		"usr/bin/a": "upper", "usr/bin/b": "of b", "bin/d": "upper", "usr/bin/e": "of b",
	} {
		if got, err := copiedFile(t, path, img.Ref, name); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"usr/bin/f": "has no file usr/bin/f", "bin/loop": "too many links to bin/loop",
	} {
		if _, err := copiedFile(t, path, img.Ref, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	changed := bundletest.Rewrite(t, path, 1,
		func(plain []byte) []byte { return bytes.Replace(plain, []byte("upper"), []byte("UPPER"), 1) })
	if _, err := copiedFile(t, changed, img.Ref, "usr/bin/a"); err == nil ||
		!strings.Contains(err.Error(), "does not match its digest") {
		t.Errorf("a changed file: %v", err)
	}
}

func copiedFile(t *testing.T, path, ref, name string) (string, error) {
	t.Helper()
	b, err := Open(path)
	must.NoError(t, err)
	defer b.Close()
	var out bytes.Buffer
	err = CopyFile(b, &out, ref, "amd64", name)
	return out.String(), err
}
