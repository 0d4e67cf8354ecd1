//go:build root

package local

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// put writes a file of a user into the /tmp of a host.
func put(t *testing.T, f host.Files, path string, owner int) {
	t.Helper()
	must.Write(t, f.Path(path), "text of a user")
	must.NoError(t, errors.Join(os.Chmod(f.Path("/tmp"), 0o777|os.ModeSticky), os.Chown(f.Path(path), owner, 0)))
}

// TestAFileOfAnotherUserIsNotRead: after a reboot, which empties /tmp, another user could put a bundle,
// a key or a manifest where the administrator's was, and the agent would load it as root.
func TestAFileOfAnotherUserIsNotRead(t *testing.T) {
	const admin, other = 1000, 1001
	cfg := config.Default()
	cfg.Bundle, cfg.VerifyKey, cfg.Addons = "/tmp/kube.tar.zst", "/tmp/our.pub", []string{"/tmp/addon.yaml", "metrics-server"}
	first := &Host{Config: cfg, Files: host.Files{Root: t.TempDir()}, Given: config.Origins{}}
	paths := []string{"/tmp/kube.tar.zst", "/tmp/our.pub", "/tmp/addon.yaml"}
	for i, field := range []string{"bundle", "verifyKey", "addons"} {
		put(t, first.Files, paths[i], admin)
		first.Given[field] = config.Origin{Source: config.FromFlag}
	}
	record, err := OwnersFile(first)
	must.NoError(t, err)
	must.NoError(t, first.Files.Put([]host.File{record}))
	later := &Host{Config: cfg, Files: first.Files, Saved: Saved{Role: ControlPlane, Config: cfg}}
	for _, owner := range []int{admin, 0, other} {
		for _, path := range paths {
			put(t, first.Files, path, owner)
		}
		foreign := owner == other
		if from := later.ImagesFrom(); (from == FromBundle) == foreign {
			t.Errorf("owner %d: images are loaded from the %s", owner, from)
		}
		if Foreign(later, "addons", "/tmp/addon.yaml") != foreign {
			t.Errorf("owner %d: the manifest is foreign: %t", owner, !foreign)
		}
		_, err := RequiredKey(later)
		if (err != nil) != foreign || foreign && !strings.Contains(err.Error(), "--verify-key") {
			t.Errorf("owner %d: key: %v", owner, err)
		}
		if err := later.Source().Signed()(&bundle.Bundle{}); foreign && !(errors.Is(err, bundle.ErrKey) && strings.Contains(err.Error(), "another user")) {
			t.Errorf("owner %d: signature: %v", owner, err)
		}
		if first.ImagesFrom() != FromBundle {
			t.Errorf("owner %d: the bundle that the user names is not used", owner)
		}
		if again, err := OwnersFile(later); err != nil || foreign && string(again.Data) != string(record.Data) {
			t.Errorf("owner %d: the record becomes %s, %v", owner, again.Data, err)
		}
	}
}
