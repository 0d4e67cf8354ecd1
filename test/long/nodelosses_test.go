//go:build e2e

package long

import (
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/pages"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestLostNodes takes control planes in and out and kills them, while a service is asked all the
// time. Then it kills the node that announces the address of a load balancer.
func TestLostNodes(t *testing.T) {
	l := clusterUser{localcluster.User{Cluster: "e2e-n", Subnet: "10.212.0.0/16", Dir: t.TempDir()}}
	l.Begin(t, pages.Read(t, "clusters.md"))
	l.Sh(t, "kube-bootstrap cluster load-image my/app:dev")
	l.Deploy(t)
	stop := l.Poll(t)
	l.controlPlanes(t)
	stop()
	t.Run("load balancer", l.loadBalancer)
}

// controlPlanes adds two control planes, kills each of the three in turn, and
// removes the two. The user's kubeconfig is from the time with only one.
func (l clusterUser) controlPlanes(t *testing.T) {
	first := l.Node(t, "master-1")
	l.Sh(t, "kube-bootstrap node add --role control-plane --name second")
	l.Sh(t, "kube-bootstrap node add --role control-plane --name third")
	clusters.Voters(t, first, 3)
	second, third := l.Node(t, "second"), l.Node(t, "third")
	hosts.Power(t, "kill", first)
	hosts.Soon(t, time.Minute, "an answer by the kubeconfig from before", l, "kubectl get nodes --request-timeout 10s")
	hosts.Power(t, "start", first)
	wait.Until(t, 2*time.Minute, "the API from "+first.Name, func() error { return clusters.AsksAPI(t, first) })
	clusters.Voters(t, first, 3)
	hosts.Power(t, "kill", third)
	l.Sh(t, "kube-bootstrap node remove third --yes --force")
	l.Gone(t, third)
	clusters.Voters(t, first, 2)
	l.Sh(t, "kube-bootstrap node remove second --yes")
	l.Gone(t, second)
	clusters.Voters(t, first, 1)
}
