package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheKeyOfTheCluster: a host that joins requires the signature that the cluster requires,
// unless its user sets another key or none.
func TestTheKeyOfTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		own, want string
		given     config.Origins
	}{
		"nothing set":   {"", VerifyKeyFile, nil},
		"its own key":   {"/root/our.pub", "/root/our.pub", nil},
		"none, by flag": {"", "", config.Origins{"verifyKey": {Source: config.FromFlag}}},
	} {
		h := &Host{Given: c.given}
		h.Config.VerifyKey = c.own
		takeKey(h, []byte("key"))
		files := KeyFiles(h)
		if h.Config.VerifyKey != c.want || (len(files) == 1) != (c.want == VerifyKeyFile) {
			t.Errorf("%s: %q, files %v", name, h.Config.VerifyKey, files)
		}
	}
}

func TestRequiredKey(t *testing.T) {
	h := &Host{Files: host.Files{Root: t.TempDir()}}
	if key, err := RequiredKey(h); key != nil || err != nil {
		t.Errorf("without a key: %q %v", key, err)
	}
	h.Config.VerifyKey = "/root/our.pub"
	if _, err := RequiredKey(h); err == nil || os.IsNotExist(err) {
		t.Errorf("a key that is gone: %v", err)
	}
	must.Write(t, filepath.Join(h.Files.Root, "/root/our.pub"), "key")
	if key, err := RequiredKey(h); string(key) != "key" || err != nil {
		t.Errorf("%q %v", key, err)
	}
}
