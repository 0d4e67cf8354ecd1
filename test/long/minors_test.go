//go:build e2e

package long

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
)

// TestMinors creates a cluster of every supported minor version, by its short
// name, and compares its versions with the catalog.
func TestMinors(t *testing.T) {
	for _, m := range catalog.Minors() {
		t.Run(m.String(), func(t *testing.T) {
			l := clusterUser{
				localcluster.User{Cluster: fmt.Sprintf("e2e-v%d", m.Number), Subnet: "10.223.0.0/16", Dir: t.TempDir()},
			}
			t.Cleanup(func() {
				if _, err := l.Try(context.Background(), "kube-bootstrap cluster clean --yes"); err != nil {
					t.Error(err)
				}
			})
			bundle := filepath.Join(l.Dir, "bundle")
			l.Sh(t, "kube-bootstrap offline build --quick --progress none --kubernetes-version "+m.String()+
				" --to "+bundle)
			l.Sh(t, "kube-bootstrap cluster up --progress none --bundle "+bundle+" --kubernetes-version "+m.String()+
				" && kube-bootstrap cluster kubeconfig --merge")
			l.runs(t, m)
			l.refusesSkew(t, m)
			if err := os.Remove(bundle); err != nil {
				t.Error(err)
			}
		})
	}
}

// runs expects the catalog's versions on both nodes, and that a pod starts.
func (l clusterUser) runs(t *testing.T, m catalog.Minor) {
	t.Helper()
	nodes := l.Sh(t,
		`kubectl get nodes -o jsonpath='{range .items[*]}`+
			`{.status.nodeInfo.kubeletVersion} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}'`)
	if want := m.Patch + " True\n" + m.Patch + " True"; nodes != want {
		t.Errorf("nodes: %q, want %q", nodes, want)
	}
	l.Sh(t, "kubectl -n kube-system rollout status deployment/coredns --timeout 3m")
	for what, image := range map[string]string{
		"kubectl -n kube-system get deployment coredns -o jsonpath='{.spec.template.spec.containers[0].image} " +
			"{.status.readyReplicas}'": "/coredns:v" + m.CoreDNS + " 2",
		"docker exec " + l.Cluster + "-master-1 docker -H unix:///run/docker-bootstrap.sock ps --format " +
			"{{.Image}}": "/etcd:" + m.Etcd,
		"docker exec " + l.Cluster + "-worker-1 docker -H unix:///run/docker-bootstrap.sock ps --format " +
			"{{.Image}} ": "/flannel:v" + m.Flannel,
		"kubectl version -o json": `"gitVersion": "` + m.Patch + `"`,
	} {
		if out := l.Sh(t, what); !strings.Contains(out, image) {
			t.Errorf("%s lacks %s:\n%s", what, image, out)
		}
	}
	l.Sh(t, "kubectl run still --image registry.k8s.io/pause:"+m.Pause+
		" --image-pull-policy Never && kubectl wait --for condition=Ready --timeout 3m pod/still")
}

// refusesSkew runs the control plane with versions that it cannot change to.
func (l clusterUser) refusesSkew(t *testing.T, m catalog.Minor) {
	t.Helper()
	master := l.Node(t, "master-1")
	for _, other := range catalog.Minors() {
		if other.Number == m.Number {
			continue
		}
		_, err := master.Try(t.Context(), "kube-bootstrap master --dry-run --kubernetes-version "+other.String())
		if err == nil || !strings.Contains(err.Error(), "version-skew") {
			t.Errorf("%s to %s: %v", m, other, err)
		}
	}
}
