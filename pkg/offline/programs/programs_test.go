package programs

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// other is an architecture that this program is not for.
var other = map[bool]string{true: "arm64", false: "amd64"}[runtime.GOARCH == "amd64"]

// written returns a bundle with the programs of a source.
func written(t *testing.T, s Source, archs ...string) string {
	t.Helper()
	built, err := s.Images(t.Context(), t.TempDir(), archs)
	must.NoError(t, err)
	b, err := bundle.NewBuilder(image.Versions{Kubernetes: "1.36.3"}, built)
	must.NoError(t, err)
	b.Cache = ""
	path := filepath.Join(t.TempDir(), "bundle.tar.zst")
	must.NoError(t, b.Write(t.Context(), path))
	return path
}

func TestABundleBringsTheProgramOfAnotherArchitecture(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	must.Write(t, filepath.Join(dir, "kube-bootstrap-linux-"+other), "program of the directory")
	s := Source{Version: "v1.2+dirty", Dir: dir}
	from := written(t, s, other, runtime.GOARCH)
	must.Write(t, filepath.Join(dir, "kube-bootstrap-linux-"+other), "another program")
	own, err := os.Executable()
	must.NoError(t, err)
	for what, c := range map[string]struct {
		source       Source
		bundle, arch string
		want         string
	}{
		"the bundle has it":                 {Source{Version: s.Version}, from, other, "program of the directory"},
		"the bundle has another version":    {Source{Version: "v1.3", Dir: dir}, from, other, "another program"},
		"there is no bundle":                {s, "", other, "another program"},
		"this program has the architecture": {s, from, runtime.GOARCH, string(must.Read(t, own))},
	} {
		path, err := c.source.For(t.Context(), c.bundle, c.arch)
		must.NoError(t, err)
		if got := must.Read(t, path); !bytes.Equal(got, []byte(c.want)) {
			t.Errorf("%s: %d bytes of %s, want %d", what, len(got), path, len(c.want))
		}
		if info, err := os.Stat(path); what == "the bundle has it" && (err != nil || info.Mode().Perm() != 0o755) {
			t.Errorf("%s: %v, %v", what, info.Mode(), err)
		}
	}
	if _, err := (Source{Version: "v1.3"}).For(t.Context(), from, other); err == nil ||
		!strings.Contains(err.Error(), "--programs") {
		t.Errorf("nobody has the program: %v", err)
	}
}

func TestADirectoryMustHaveAllPrograms(t *testing.T) {
	dir := t.TempDir()
	err := (Source{Dir: dir}).Check([]string{runtime.GOARCH, other})
	if err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("got %v", err)
	}
	if err := (Source{}).Check([]string{other}); err != nil {
		t.Error(err)
	}
}
