//go:build e2e

package long

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
)

// TestSuite runs tests of Kubernetes itself on a cluster of two nodes, with the
// images they need made here.
func TestSuite(t *testing.T) {
	l := clusterUser{localcluster.User{Cluster: "e2e-s", Subnet: "10.222.0.0/16", Dir: t.TempDir()}}
	t.Cleanup(func() {
		if _, err := l.Try(context.Background(), "kube-bootstrap cluster clean --yes"); err != nil {
			t.Error(err)
		}
	})
	l.Sh(t, "kube-bootstrap cluster up --progress none && kube-bootstrap cluster kubeconfig --merge")
	for _, focus := range []string{
		"Services should serve a basic endpoint from pods",
		"DNS should provide DNS for the cluster",
		"Secrets should be consumable from pods in volume with defaultMode",
		"Networking Granular Checks: Pods should function for intra-pod communication: http",
		"StatefulSet Basic StatefulSet functionality .StatefulSetBasic. should have a working scale", // nginx
		// sample-apiserver and its etcd
		"Aggregator Should be able to support the 1.17 Sample API Server",
		"ImageVolume should succeed with pod and pull policy of Always", // kitten, pulled again
		"Update Demo should scale a replication controller",             // nautilus
		"Kubectl diff should check if kubectl diff finds a difference",  // diff, next to the tests
		// nobody answers on a removed port
		"Services should serve endpoints on same port and different protocols",
	} {
		out := l.Sh(t, "kube-bootstrap cluster e2e '"+focus+"' --report-dir report -o json 2>log || { tail -50 log; "+
			"exit 1; }")
		if !strings.Contains(out, `"tests": `) || strings.Contains(out, `"tests": 0`) ||
			strings.Contains(out, "failed") {
			t.Errorf("%s: %s", focus, out)
		}
		if report, err := os.ReadFile(filepath.Join(l.Dir, "report/junit.xml")); err != nil ||
			!strings.Contains(string(report), "<testcase") {
			t.Errorf("%s: no report: %v", focus, err)
		}
	}
	l.noTests(t, "runs to the end")
	serial := l.Sh(t, "kube-bootstrap cluster e2e-serial 'Namespaces .*should apply changes to a namespace status' "+
		"-o json 2>/dev/null")
	if strings.Contains(serial, "failed") {
		t.Errorf("e2e-serial: %s", serial)
	}
	for _, command := range []string{"e2e", "e2e-serial"} {
		if _, err := l.Try(t.Context(), "kube-bootstrap cluster "+command+" 'no such test anywhere'"); err == nil ||
			!strings.Contains(err.Error(), "[focus]") {
			t.Errorf("%s that matches nothing: %v", command, err)
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		if err := l.signalled(t, "kube-bootstrap cluster e2e --progress none", signal, time.Minute); err == nil {
			t.Errorf("%s in the middle, and it ended well", signal)
		}
		if signal == syscall.SIGKILL {
			l.Sh(t, "kube-bootstrap cluster e2e 'Services should serve a basic endpoint from pods' --progress none "+
				">/dev/null")
		}
		l.noTests(t, signal.String())
	}
}

// noTests expects that nothing is left of a test run: no container, no
// namespaces of the tests, and no configuration for its images.
func (l clusterUser) noTests(t *testing.T, after string) {
	t.Helper()
	master := l.Cluster + "-master-1"
	left := l.Sh(t,
		"kubectl get namespaces -l e2e-run -o name; docker exec "+master+
			" docker ps -aq --filter name=kube-bootstrap-e2e; "+
			"for node in "+master+" "+l.Cluster+"-worker-1; "+
			"do docker exec $node find /etc/containerd/certs.d -name hosts.toml; "+
			"docker exec $node sh -c 'iptables -S | "+
			"grep kube-bootstrap-e2e || true'; done")
	if left != "" {
		t.Errorf("after %s a run of the tests left:\n%s", after, left)
	}
}
