package localcluster

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
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Cluster is a cluster of containers that the program creates on this machine.
type Cluster struct {
	Name  string
	Flags []string
}

// Master returns the control plane.
func (c Cluster) Master() hosts.Machine {
	return hosts.Machine{Name: c.Name + "-master-1", IP: "10.194.0.2"}
}

// Worker returns the first worker.
func (c Cluster) Worker() hosts.Machine {
	return hosts.Machine{Name: c.Name + "-worker-1", IP: "10.194.0.10"}
}

// Command returns the arguments of a command for the cluster.
func (c Cluster) Command(verb string, args ...string) []string {
	all := append([]string{hosts.Built.Binary, "cluster", verb}, args...)
	return append(all, "--name", c.Name)
}

// Run runs a command for the cluster.
func (c Cluster) Run(t *testing.T, verb string, args ...string) string {
	t.Helper()
	out, err := host.Command{Args: c.Command(verb, args...)}.Run(t.Context())
	must.NoError(t, err)
	return string(out)
}

// KillIn kills a command within some time after a step has started whose name
// begins so.
func (c Cluster) KillIn(t *testing.T, step string, within time.Duration, verb string, args ...string) {
	t.Helper()
	all := c.Command(verb, append(args, "--progress", "json")...)
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

// Cleaned removes the cluster; nothing of it may be left.
func (c Cluster) Cleaned(t *testing.T) {
	ctx := context.Background() // that of a test ends before this
	if _, err := (host.Command{Args: c.Command("clean", "--yes")}).Run(ctx); err != nil {
		t.Error(err)
	}
	_, err := host.Command{Args: c.Command("clean", "--yes")}.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "cluster "+c.Name+" does not exist") {
		t.Errorf("clean of what is not there: %v", err)
	}
	const look = `docker ps -aq --filter label=$1; docker volume ls -q --filter label=$1; ` +
		`docker network ls -q --filter label=$1; docker images -aq --filter label=$1`
	left, err := host.Command{Args: []string{"sh", "-c", look, "sh", "kube-bootstrap.dev/cluster=" + c.Name}}.Run(ctx)
	if err != nil || len(left) > 0 {
		t.Errorf("clean leaves %s, %v", left, err)
	}
}
