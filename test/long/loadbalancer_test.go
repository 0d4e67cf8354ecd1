//go:build e2e

package long

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// loadBalancer adds the addon metallb to a cluster, reaches a Service from a
// container that is no node, also after the node that announced its address was
// killed, and removes the addon, which must leave nothing.
func (l clusterUser) loadBalancer(t *testing.T) {
	const up = "kube-bootstrap cluster up -f cluster.yaml --progress none"
	l.Sh(t, up+" --addons metrics-server,local-path,metallb,./app.yaml")
	l.Sh(t, "kubectl -n metallb-system rollout status deployment/controller --timeout 180s && "+
		"kubectl -n metallb-system rollout status daemonset/speaker --timeout 180s")
	l.Sh(t, "kubectl expose deployment web --name balanced --type LoadBalancer --port 8080")
	var address string
	wait.Until(t, time.Minute, "the address of the Service", func() error {
		out, err := l.Try(t.Context(), "kubectl get service balanced -o "+
			"'jsonpath={.status.loadBalancer.ingress[0].ip}'")
		if err == nil && !strings.HasPrefix(out, "10.212.255.") {
			err = fmt.Errorf("it has %q", out)
		}
		address = out
		return err
	})
	asks := func() error {
		_, err := l.Try(t.Context(), "docker run --rm --network "+l.Cluster+" my/app:dev /probe get http://"+address+
			":8080/")
		return err
	}
	wait.Until(t, time.Minute, "an answer to a container that is no node", asks)
	l.Sh(t, "curl -sf --retry 10 --retry-all-errors -m 5 http://"+address+":8080/")
	t.Run("another node takes over", func(t *testing.T) { l.takeOver(t, asks) })
	t.Run("BGP is refused", l.noBGP)
	l.Sh(t, "kubectl delete service balanced && "+up)
	left := l.Sh(t, `kubectl get crd,clusterrole,clusterrolebinding,namespace -o name | grep metallb || true`)
	if left != "" {
		t.Errorf("the addon left %s", left)
	}
}

// takeOver kills the node that announces the address, which may be the control plane.
func (l clusterUser) takeOver(t *testing.T, asks func() error) {
	var on string
	wait.Until(t, time.Minute, "the node that announces the address", func() error {
		out, err := l.Try(t.Context(), "kubectl -n metallb-system get servicel2statuses -o "+
			"'jsonpath={.items[0].status.node}'")
		if on = strings.TrimPrefix(out, l.Cluster+"-"); err == nil && on == "" {
			err = fmt.Errorf("none is named")
		}
		return err
	})
	announcer := l.Node(t, on)
	hosts.Power(t, "kill", announcer)
	killed := time.Now()
	wait.Until(t, time.Minute, "an answer without "+announcer.Name, asks)
	t.Logf("%s was replaced within %s", announcer.Name, time.Since(killed).Round(time.Second))
	hosts.Power(t, "start", announcer)
	hosts.Soon(t, 2*time.Minute, "all nodes", l, "kubectl wait --for condition=Ready nodes --all --timeout 20s && "+
		"kubectl rollout status deployment/web --timeout 20s")
}

func (l clusterUser) noBGP(t *testing.T) {
	const peer = `apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: router, namespace: metallb-system}
spec: {myASN: 64500, peerASN: 64501, peerAddress: 10.212.0.1}`
	out, err := l.Try(t.Context(), "kubectl apply -f - 2>&1 <<'YAML'\n"+peer+"\nYAML")
	if err == nil || !strings.Contains(out+err.Error(), "by ARP and NDP only, not by BGP") {
		t.Errorf("a BGPPeer: %v\n%s", err, out)
	}
}
