//go:build root

package containers

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access/accesstest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestAContainerIsANode(t *testing.T) {
	p := here(t)
	const name = "kube-bootstrap-test-access"
	must.NoError(t, p.Engine.Run(t.Context(), dockertest.Sleeper(t, p.Engine, name)))
	t.Cleanup(func() { must.NoError(t, p.Engine.Remove(context.Background(), name)) })
	accesstest.Node(t, name, p.Node(name), p.Node(name+"-missing"))
}

// here returns the provider of the Docker of this machine.
func here(t *testing.T) DockerProvider {
	t.Helper()
	p, err := EngineChoice{}.Open()
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, p.Close()) })
	return p.(DockerProvider)
}

func TestAnEngineIsAProvider(t *testing.T) {
	providertest.Contract(t, here(t), fmt.Sprintf("unit-%d", os.Getpid()))
}
