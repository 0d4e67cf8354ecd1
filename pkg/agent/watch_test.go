package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRepairOfAFileThatIsRemoved: with its directory too, which the repair makes
// again.
func TestRepairOfAFileThatIsRemoved(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	in, log, _ := start(t, files, fileDuty(files, "bin/plugin", Files))
	must.Until(t, "repair at the start", func() bool { return log.has("repaired: write bin/plugin") })
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- WatchFiles(ctx, in, files.Path("/bin"), filepath.Join(files.Root, "never")) }()
	for _, path := range []string{"/bin/plugin", "/bin"} {
		must.NoError(t, os.RemoveAll(files.Path(path)))
		must.Until(t, "repair after "+path+" was removed", func() bool { return files.Exists("/bin/plugin") })
	}
	stop()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}
