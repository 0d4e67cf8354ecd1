//go:build e2e && long

package e2e

import (
	"testing"
	"time"
)

// TestLostNodes takes control planes in and out and kills them, while a service is asked all the
// time. Then it kills the node that announces the address of a load balancer.
func TestLostNodes(t *testing.T) {
	l := clusterUser{cluster: "e2e-n", subnet: "10.212.0.0/16", dir: t.TempDir()}
	l.begin(t, readPage(t, "clusters.md"))
	l.sh(t, "kube-bootstrap cluster load-image my/app:dev")
	l.deploy(t)
	stop := l.poll(t)
	l.controlPlanes(t)
	stop()
	t.Run("load balancer", l.loadBalancer)
}

// controlPlanes adds two control planes, kills each of the three in turn, and
// removes the two. The user's kubeconfig is from the time with only one.
func (l clusterUser) controlPlanes(t *testing.T) {
	first := l.node(t, "master-1")
	l.sh(t, "kube-bootstrap node add --role control-plane --name second")
	l.sh(t, "kube-bootstrap node add --role control-plane --name third")
	voters(t, first, 3)
	second, third := l.node(t, "second"), l.node(t, "third")
	power(t, "kill", first)
	soon(t, time.Minute, "an answer by the kubeconfig from before", l, "kubectl get nodes --request-timeout 10s")
	power(t, "start", first)
	eventually(t, 2*time.Minute, "the API from "+first.name, func() error { return asksAPI(t, first) })
	voters(t, first, 3)
	power(t, "kill", third)
	l.sh(t, "kube-bootstrap node remove third --yes --force")
	l.gone(t, third)
	voters(t, first, 2)
	l.sh(t, "kube-bootstrap node remove second --yes")
	l.gone(t, second)
	voters(t, first, 1)
}
