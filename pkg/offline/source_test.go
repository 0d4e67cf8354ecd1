package offline

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

func sourceOf(t *testing.T) Source {
	t.Helper()
	return Source{Path: writeSmall(t), Images: image.Catalogue(versions(t), ""), Arch: "amd64", Files: host.Files{Root: t.TempDir()}}
}

func TestPluginsOfABundle(t *testing.T) {
	s := sourceOf(t)
	install := s.InstallCNIPlugins()
	hosttest.Contract(t, hosttest.Tree(t, s.Files.Root), install)
	if err := install.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := string(read(t, s.Files.Path(image.CNIDir+"/portmap"))); !strings.Contains(got, "# ours too") {
		t.Errorf("portmap has the content %q", got)
	}
}
