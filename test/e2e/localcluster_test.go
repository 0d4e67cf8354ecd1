//go:build e2e && (long || bench)

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// localCluster is a cluster of containers that the program creates on this machine.
type localCluster struct {
	name  string
	flags []string
}

func (c localCluster) master() machine { return machine{name: c.name + "-master-1", ip: "10.194.0.2"} }
func (c localCluster) worker() machine { return machine{name: c.name + "-worker-1", ip: "10.194.0.10"} }

func (c localCluster) command(verb string, args ...string) []string {
	all := append([]string{built.binary, "cluster", verb}, args...)
	return append(all, "--name", c.name)
}

func (c localCluster) run(t *testing.T, verb string, args ...string) string {
	t.Helper()
	out, err := host.Command{Args: c.command(verb, args...)}.Run(t.Context())
	must.NoError(t, err)
	return string(out)
}

// killIn kills a command within some time after a step has started whose name
// begins so.
func (c localCluster) killIn(t *testing.T, step string, within time.Duration, verb string, args ...string) {
	t.Helper()
	all := c.command(verb, append(args, "--progress", "json")...)
	cmd := exec.CommandContext(t.Context(), all[0], all[1:]...)
	events, err := cmd.StderrPipe()
	must.NoError(t, err)
	must.NoError(t, cmd.Start())
	lines := bufio.NewScanner(events)
	for lines.Scan() {
		var e struct{ Step, Kind string }
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Kind == "started" && strings.HasPrefix(e.Step, step) {
			time.Sleep(rand.N(within + 1)) // any moment of it
			_ = cmd.Process.Kill()         // it may have ended by then
		}
	}
	t.Logf("%s %v: %v in %q", verb, args, cmd.Wait(), step)
}

// cleaned removes the cluster; nothing of it may be left.
func (c localCluster) cleaned(t *testing.T) {
	ctx := context.Background() // that of a test ends before this
	if _, err := (host.Command{Args: c.command("clean", "--yes")}).Run(ctx); err != nil {
		t.Error(err)
	}
	_, err := host.Command{Args: c.command("clean", "--yes")}.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "cluster "+c.name+" does not exist") {
		t.Errorf("clean of what is not there: %v", err)
	}
	const look = `docker ps -aq --filter label=$1; docker volume ls -q --filter label=$1; docker network ls -q --filter label=$1; docker images -aq --filter label=$1`
	left, err := host.Command{Args: []string{"sh", "-c", look, "sh", "kube-bootstrap.dev/cluster=" + c.name}}.Run(ctx)
	if err != nil || len(left) > 0 {
		t.Errorf("clean leaves %s, %v", left, err)
	}
}
