package offline

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// tree prints a root directory, but for the list of directories made, which
// the last of all steps removes.
func tree(t *testing.T, root string) func() string {
	return func() string {
		var b strings.Builder
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			at := strings.TrimPrefix(path, root)
			if err != nil || at == host.StateDir+"/made-dirs" || strings.HasPrefix(host.StateDir+"/", at+"/") {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintln(&b, at, info.Mode())
			if info.Mode().IsRegular() {
				fmt.Fprintf(&b, "%s %q\n", at, read(t, path))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
}

func sourceOf(t *testing.T) Source {
	t.Helper()
	return Source{Path: writeSmall(t), Images: image.Catalogue(versions(t), ""), Arch: "amd64", Files: host.Files{Root: t.TempDir()}}
}

func (s Source) lay(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := s.Files.Path(pluginPath(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPluginsOnAFreshHost(t *testing.T) {
	s := sourceOf(t)
	hosttest.Contract(t, tree(t, s.Files.Root), s.InstallCNIPlugins())
}

func TestPluginsOfTheOwner(t *testing.T) {
	s := sourceOf(t)
	fine := fakePlugin(`"0.4.0","1.0.0"`)
	kept := s.lay(t, "bridge", fine, 0o755)
	old := s.lay(t, "portmap", fakePlugin(`"0.3.1"`), 0o700)
	other := s.lay(t, "calico", "not ours", 0o755)
	hosttest.Contract(t, tree(t, s.Files.Root), s.InstallCNIPlugins())

	if err := s.InstallCNIPlugins().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if string(read(t, kept)) != fine || string(read(t, other)) != "not ours" {
		t.Error("a plugin that serves was replaced")
	}
	if !strings.Contains(string(read(t, old)), "# ours too") {
		t.Error("a plugin that is too old stayed")
	}
}

func TestPluginsReplacedByTheOwnerStay(t *testing.T) {
	s := sourceOf(t)
	if err := s.InstallCNIPlugins().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := s.lay(t, "bridge", "the owner's own", 0o755)
	if err := s.InstallCNIPlugins().Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if string(read(t, path)) != "the owner's own" {
		t.Error("the owner's plugin was removed")
	}
	if s.Files.Exists(pluginPath("portmap")) {
		t.Error("our plugin was left")
	}
}
