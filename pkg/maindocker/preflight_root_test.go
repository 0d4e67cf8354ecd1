//go:build root

package maindocker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestUnitProblems: a process with mounts of its own, as Docker's unit may give it, in place of dockerd.
func TestUnitProblems(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"slave":          {[]string{"unshare", "-m", "--propagation", "slave", "sleep", "100"}, "is not shared"},
		"shared":         {[]string{"unshare", "-m", "--propagation", "shared", "sleep", "100"}, ""},
		"no mounts":      {[]string{"sleep", "100"}, ""},
		"root directory": {[]string{"unshare", "-m", "-R", "/usr", "/bin/sleep", "100"}, "root directory /usr"},
	} {
		t.Run(name, func(t *testing.T) {
			files := host.Files{Root: t.TempDir()}
			write(t, files, `{"pidfile": "/docker.pid"}`)
			must.NoError(t, os.Symlink("/proc", files.Path("/proc")))
			must.NoError(t, files.Write("/docker.pid", []byte(strconv.Itoa(startAsleep(t, c.args))+"\n"), 0o644))
			problems := step.Problems(unitProblems(files, "/var/lib/kubelet"))
			if c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) != 1 || problems[0].Name != "docker-unit" || !strings.Contains(problems[0].Text, c.want)) {
				t.Errorf("got %v", problems)
			}
		})
	}
}

// startAsleep starts a program that ends as sleep, until the end of the test.
func startAsleep(t *testing.T, args []string) int {
	t.Helper()
	sleeping := exec.Command(args[0], args[1:]...)
	must.NoError(t, sleeping.Start())
	t.Cleanup(func() { _ = sleeping.Process.Kill(); _ = sleeping.Wait() })
	comm := fmt.Sprintf("/proc/%d/comm", sleeping.Process.Pid)
	must.NoError(t, step.Until(t.Context(), func(context.Context) error {
		if name, err := os.ReadFile(comm); err != nil || string(name) != "sleep\n" {
			return fmt.Errorf("%s runs, %w", name, err)
		}
		return nil
	}, nil))
	return sleeping.Process.Pid
}
