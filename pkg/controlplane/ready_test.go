package controlplane

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheLogOfTheLastRunIsShown: after ten restarts, and after a change of the pod.
func TestTheLogOfTheLastRunIsShown(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	started := time.Now().Add(-time.Hour)
	for i, name := range []string{"1a/kube-apiserver/9.log", "1a/kube-apiserver/10.log", "0b/kube-apiserver/0.log"} {
		path := files.Path(podLogDir + "/kube-system_kube-apiserver-node-1_" + name)
		at := started.Add(time.Duration(i) * time.Minute)
		must.Write(t, path, "says "+name)
		must.NoError(t, os.Chtimes(path, at, at))
		if got := explain(files); !strings.HasSuffix(got, "says "+name) {
			t.Errorf("shown is %s, want %s", got, name)
		}
	}
}
