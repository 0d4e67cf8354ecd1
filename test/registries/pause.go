package registries

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// PauseImage is small, and compiled in seconds for all architectures.
var PauseImage = "registry.k8s.io/pause:" + catalog.Newest().Pause

// PauseArchs are the architectures of BuildPause.
var PauseArchs = []string{"amd64", "arm64", "arm", "ppc64le"}

// BuildPause builds a bundle of the image for several architectures, with an empty cache.
func BuildPause(t *testing.T, to string) {
	t.Helper()
	_, err := host.Command{
		Args: []string{
			hosts.Built.Binary, "offline", "build", "--images", "pause", "--arch", strings.Join(PauseArchs, ","),
			"--to", to,
		},
		Env: []string{"KUBE_BOOTSTRAP_CACHE=" + t.TempDir()},
	}.Run(t.Context())
	must.NoError(t, err)
}
