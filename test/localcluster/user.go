// Package localcluster creates and uses clusters of containers as users of this machine do.
package localcluster

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
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// User is somebody on this machine with a cluster of containers.
type User struct {
	Cluster, Subnet string
	Dir             string // where the user works
}

// Env returns the variables of the user.
func (l User) Env() []string {
	return []string{
		"PATH=" + filepath.Dir(hosts.Built.Binary) + ":" + os.Getenv("PATH"),
		"KUBECONFIG=" + filepath.Join(l.Dir, "kubeconfig"),
		"KUBE_BOOTSTRAP_NAME=" + l.Cluster, "KUBE_BOOTSTRAP_CLUSTER=" + l.Cluster, "K8S_DIND_DIND_SUBNET=" + l.Subnet,
		"KUBE_BOOTSTRAP_BUNDLE=" + hosts.Built.Bundle, "KUBE_BOOTSTRAP_SNAPSHOT=false",
		"KUBE_BOOTSTRAP_KEEP_IMAGES=true",
	}
}

// Try runs a script in the directory of the user.
func (l User) Try(ctx context.Context, script string) (string, error) {
	out, err := host.Command{Args: []string{"bash", "-ec", script}, Env: l.Env(), Dir: l.Dir}.Run(ctx)
	return strings.TrimSpace(string(out)), err
}

// Sh types what a page of docs shows, or something like it.
func (l User) Sh(t *testing.T, script string) string {
	t.Helper()
	return hosts.Typed(t, l, script)
}

// Node is one of the cluster's hosts, by its short name.
func (l User) Node(t *testing.T, name string) hosts.Machine {
	t.Helper()
	whole := l.Cluster + "-" + name
	return hosts.Machine{
		Name: whole, IP: hosts.Docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}",
			whole),
	}
}

// World is what this machine holds of the cluster, and of the user's files.
// Cgroups are those of containers that are not there any more. A prepared disk stays while
// another cluster exists.
func (l User) World(t *testing.T) string {
	t.Helper()
	out, err := l.Try(t.Context(), fmt.Sprintf(`
docker ps -a --format 'container {{.Names}}' | grep %[1]s || true
docker volume ls --format 'volume {{.Name}}' | grep %[1]s | grep -v ^volume.kube-bootstrap.disk || true
docker network ls --format 'network {{.Name}}' | grep %[1]s || true
docker images --format 'image {{.Repository}}:{{.Tag}}' | grep %[1]s || true
iptables-save | grep -F '%[2]s' || true
ip -4 addr | grep -F '%[2]s' || true
ip route | grep -F '%[2]s' || true
find ~/.cache/kube-bootstrap . -path '*%[1]s*' -print
find /sys/fs/cgroup -type d -path '*/docker/*' -regex '.*/[0-9a-f]*' |
	grep -vF "$(docker ps -aq --no-trunc; echo none)" || true
cat kubeconfig || true`, l.Cluster, strings.TrimSuffix(l.Subnet, "0.0/16")))
	must.NoError(t, err)
	return out
}

// LeavesNothing expects the machine to be as it was. The engine removes cgroups and links of
// containers a moment after the containers.
func (l User) LeavesNothing(t *testing.T, what, before string) {
	t.Helper()
	var diff []string
	for end := time.Now().Add(hosts.Settles); time.Now().Before(end); time.Sleep(time.Second) {
		if diff = hosttest.Diff(before, l.World(t)); len(diff) == 0 {
			return
		}
	}
	t.Errorf("%s left:\n%s", what, strings.Join(diff, "\n"))
}
