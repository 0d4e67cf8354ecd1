//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// clusterUser is somebody on this machine with a cluster of containers.
type clusterUser struct {
	cluster, subnet string
	dir             string // where the user works
}

func (l clusterUser) env() []string {
	return []string{
		"PATH=" + filepath.Dir(built.binary) + ":" + os.Getenv("PATH"), "KUBECONFIG=" + filepath.Join(l.dir, "kubeconfig"),
		"KUBE_BOOTSTRAP_NAME=" + l.cluster, "KUBE_BOOTSTRAP_CLUSTER=" + l.cluster, "K8S_DIND_DIND_SUBNET=" + l.subnet,
		"KUBE_BOOTSTRAP_BUNDLE=" + built.bundle, "KUBE_BOOTSTRAP_SNAPSHOT=false", "KUBE_BOOTSTRAP_KEEP_IMAGES=true",
	}
}

func (l clusterUser) try(ctx context.Context, script string) (string, error) {
	out, err := host.Command{Args: []string{"bash", "-ec", script}, Env: l.env(), Dir: l.dir}.Run(ctx)
	return strings.TrimSpace(string(out)), err
}

// sh types what a page of docs shows, or something like it.
func (l clusterUser) sh(t *testing.T, script string) string {
	t.Helper()
	start := time.Now()
	out, err := l.try(t.Context(), script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	t.Logf("%s: %s", strings.SplitN(script, "\n", 2)[0], time.Since(start).Round(time.Second/10))
	return out
}

// node is one of the cluster's hosts, by its short name.
func (l clusterUser) node(t *testing.T, name string) machine {
	t.Helper()
	whole := l.cluster + "-" + name
	return machine{name: whole, ip: docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", whole)}
}

// world is what this machine holds of the cluster, and of the user's files.
// Cgroups are those of containers that are not there any more. A prepared disk stays while
// another cluster exists.
func (l clusterUser) world(t *testing.T) string {
	t.Helper()
	out, err := l.try(t.Context(), fmt.Sprintf(`
docker ps -a --format 'container {{.Names}}' | grep %[1]s || true
docker volume ls --format 'volume {{.Name}}' | grep %[1]s | grep -v ^volume.kube-bootstrap.disk || true
docker network ls --format 'network {{.Name}}' | grep %[1]s || true
docker images --format 'image {{.Repository}}:{{.Tag}}' | grep %[1]s || true
iptables-save | grep -F '%[2]s' || true
ip -4 addr | grep -F '%[2]s' || true
ip route | grep -F '%[2]s' || true
find ~/.cache/kube-bootstrap . -path '*%[1]s*' -print
find /sys/fs/cgroup -type d -path '*/docker/*' -regex '.*/[0-9a-f]*' | grep -vF "$(docker ps -aq --no-trunc; echo none)" || true
cat kubeconfig || true`, l.cluster, strings.TrimSuffix(l.subnet, "0.0/16")))
	must.NoError(t, err)
	return out
}

// leavesNothing expects the machine to be as it was. The engine removes cgroups and links of
// containers a moment after the containers.
func (l clusterUser) leavesNothing(t *testing.T, what, before string) {
	t.Helper()
	var diff []string
	for end := time.Now().Add(settles); time.Now().Before(end); time.Sleep(time.Second) {
		if diff = hosttest.Diff(before, l.world(t)); len(diff) == 0 {
			return
		}
	}
	t.Errorf("%s left:\n%s", what, strings.Join(diff, "\n"))
}
