//go:build root

package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

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
