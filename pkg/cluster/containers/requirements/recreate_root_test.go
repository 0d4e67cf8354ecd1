//go:build root

package requirements

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAnotherPortOfTheLoadBalancer: the load balancer exists with a port, and a program of this machine has the
// port that is requested now.
func TestAnotherPortOfTheLoadBalancer(t *testing.T) {
	c := unitCluster(t)
	t.Cleanup(func() {
		if err := c.Remove(context.Background(), session.RecordNote); err != nil {
			t.Error(err)
		}
	})
	labels := map[string]string{docker.ClusterLabel: c.Name}
	image := c.Name + ":1"
	must.NoError(t, c.Engine.Images().Import(t.Context(), image, bytes.NewReader(make([]byte, 1024)),
		"LABEL "+docker.ClusterLabel+"="+c.Name))
	taken := func() int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l.Addr().(*net.TCPAddr).Port
	}
	own, other := taken(), taken()
	_, err := c.Engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Name: containers.LoadBalancerName(c.Name), Config: &container.Config{Image: image, Cmd: []string{"/balancer"}, Labels: labels},
		HostConfig: &container.HostConfig{NetworkMode: "none", PortBindings: network.PortMap{
			network.MustParsePort("6443/tcp"): {{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: fmt.Sprint(own)}},
		}},
	})
	must.NoError(t, err)
	for port, want := range map[int]string{own: "", other: "cluster-port"} {
		c := checks{Setup: testhost.Setup{Cluster: c, APIPort: port, Publish: true}, recreate: true}
		if got := problemName(c.portTaken(t.Context())); got != want {
			t.Errorf("port %d, while the load balancer has %d: %q, want %q", port, own, got, want)
		}
	}
}

// unitCluster opens a cluster on the Docker of this machine.
func unitCluster(t *testing.T) containers.Cluster {
	t.Helper()
	name := fmt.Sprintf("unit-%d", os.Getpid())
	s, err := session.Open(session.Selection{Name: name, Provider: containers.EngineChoice{}, CacheDir: t.TempDir()}, nil)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, s.Close()) })
	c, err := containers.Of(s)
	must.NoError(t, err)
	return c
}

func problemName(err error) string {
	for _, p := range step.Problems(err) {
		return p.Name
	}
	return ""
}
