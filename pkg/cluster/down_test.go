package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestARecordOfEntriesInAKubeconfigIsKept: without the record, no later clean would remove
// the entries.
func TestARecordOfEntriesInAKubeconfigIsKept(t *testing.T) {
	options := session.Selection{Name: "one", CacheDir: t.TempDir()}
	of := must.Write(t, filepath.Join(t.TempDir(), "config"), "damaged: [")
	record := must.Write(t, filepath.Join(options.PrivateDir(), "kubeconfig.json"), `{"path": "`+of+`"}`)
	if err := removePrivate(t.Context(), options); err == nil || !session.FileExists(record) {
		t.Errorf("record kept: %t, %v", session.FileExists(record), err)
	}
	must.NoError(t, os.Remove(of))
	if err := removePrivate(t.Context(), options); err != nil || session.FileExists(options.PrivateDir()) {
		t.Errorf("afterwards, directory kept: %t, %v", session.FileExists(options.PrivateDir()), err)
	}
}
