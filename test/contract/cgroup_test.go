//go:build hosttest

package contract

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestEndCgroup: a process that nobody knows any more does not keep its group.
func TestEndCgroup(t *testing.T) {
	const name = "kube-bootstrap-test"
	group := "/sys/fs/cgroup/" + name
	if !kernel.CgroupV2() {
		group = "/sys/fs/cgroup/pids/" + name
	}
	inner := filepath.Join(group, "inner")
	must.NoError(t, os.MkdirAll(inner, 0o755))
	sleeper := exec.Command("sleep", "600")
	must.NoError(t, sleeper.Start())
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()
	must.NoError(t, os.WriteFile(inner+"/cgroup.procs", []byte(strconv.Itoa(sleeper.Process.Pid)), 0o644))
	if err := process.RemoveCgroup(name); err == nil {
		t.Error("a group with a process was removed")
	}
	must.NoError(t, process.EndCgroup(t.Context(), name))
	if err := <-ended; err == nil {
		t.Error("the process was not killed")
	}
	if _, err := os.Stat(group); err == nil {
		t.Error("the group is there")
	}
}
