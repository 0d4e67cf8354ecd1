//go:build root

package offline

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPlugins: every source has the plugins, be it a bundle, a registry or a
// Docker that has the images.
func TestPlugins(t *testing.T) {
	d, _ := dockertest.Start(t)
	file := sourceOf(t)
	must.NoError(t, file.Load(imagestore.Docker(image.Main, d)).Apply(t.Context()))
	inDocker, inRegistry := file, file
	inDocker.Docker, inRegistry.Registry = d, pushed(t, file.Path)
	for name, s := range map[string]Source{"bundle": file, "main Docker": inDocker, "registry": inRegistry} {
		t.Run(name, func(t *testing.T) {
			s.Versions, s.Files = bundletest.Versions(t), host.Files{Root: t.TempDir()}
			install := s.InstallCNIPlugins()
			hosttest.Contract(t, hosttest.Tree(t, s.Files.Root), install)
			must.NoError(t, install.Apply(t.Context()))
			if got := string(must.Read(t, s.Files.Path(image.CNIDir+"/portmap"))); !strings.Contains(got, "# ours too") {
				t.Errorf("portmap has the content %q", got)
			}
		})
	}
}
