package recovery

import (
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAKilledRecoveryContinues: the recovered data are complete, and the run was killed before or while it took them.
func TestAKilledRecoveryContinues(t *testing.T) {
	for name, begun := range map[string]bool{"before": false, "between the renames": true} {
		files := host.Files{Root: t.TempDir()}
		must.NoError(t, files.Write(etcd.DataDir+"/member/old", nil, 0o600))
		must.NoError(t, files.Write(etcd.CompleteDir+"/member/new", nil, 0o600))
		if begun {
			must.NoError(t, os.Rename(files.Path(etcd.DataDir), files.Path(etcd.FormerDir)))
		}
		plan := Recover(etcd.MemberContainer{Member: etcd.Member{Name: "one", Data: etcd.DataOf(files)}})
		must.NoError(t, (&step.Runner{}).Do(t.Context(), plan)) // it makes the data no second time
		if !files.Exists(etcd.DataDir+"/member/new") || !files.Exists(etcd.FormerDir+"/member/old") {
			t.Errorf("killed %s: the data were not replaced", name)
		}
		must.NoError(t, (&step.Runner{}).Do(t.Context(), plan))
		must.NoError(t, (&step.Runner{}).Do(t.Context(), step.Plan{{BeginRecovery(files)}, {EndRecovery(files)}}))
		if files.Exists(etcd.FormerDir) {
			t.Errorf("killed %s: the data of before are left", name)
		}
	}
}
