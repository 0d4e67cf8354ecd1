//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// addons uses what a new cluster has: metrics, and volumes that survive their pod
// and the restart of their node.
func (l clusterUser) addons(t *testing.T) {
	l.Sh(t, "kubectl apply -f - <<'YAML'\n"+counted+"\nYAML\nkubectl rollout status statefulset/data --timeout 300s")
	l.counts(t, "1")
	out, err := l.Try(t.Context(),
		"kubectl create --as system:serviceaccount:local-path-storage:local-path-provisioner -f - <<'YAML'\n"+
			stolenToken+"\nYAML")
	if err == nil || !strings.Contains(out+err.Error(), "denied request") {
		t.Errorf("the provisioner of volumes creates a pod that opens a host: %s, %v", out, err)
	}
	l.Sh(t, "kubectl delete pod data-0")
	l.counts(t, "2")
	l.Sh(t, "kube-bootstrap node stop worker-1 && kube-bootstrap node start worker-1")
	l.counts(t, "3")
	hosts.Soon(t, 3*time.Minute, "the use of each node", l,
		`test "$(kubectl top nodes --no-headers | grep -c '%')" = "$(kubectl get nodes --no-headers | wc -l)"`)
	l.Sh(t, "kubectl delete statefulset data && kubectl delete pvc file-data-0")
	hosts.Soon(t, time.Minute, "the end of the volume", l, `test -z "$(kubectl get pv -o name)"`)
}

// counts expects the pod data-0 to be the n-th that wrote into its volume.
func (l clusterUser) counts(t *testing.T, n string) {
	t.Helper()
	wait.Until(t, 2*time.Minute, "pod "+n, func() error {
		out, err := l.Try(t.Context(), "kubectl wait pod/data-0 --for condition=Ready --timeout 60s >/dev/null && "+
			"kubectl logs data-0")
		if err == nil && out != n {
			return fmt.Errorf("the volume of data-0 had %s pods, want %s", out, n)
		}
		return err
	})
}

// stolenToken is a pod that somebody would create with the token of the provisioner.
const stolenToken = `apiVersion: v1
kind: Pod
metadata: {name: stolen, namespace: local-path-storage}
spec:
  nodeName: e2e-n-master-1
  containers: [{name: shell, image: my/app:dev, securityContext: {privileged: true},
    volumeMounts: [{name: host, mountPath: /host}]}]
  volumes: [{name: host, hostPath: {path: /}}]`

const counted = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: data}
spec:
  serviceName: data
  selector: {matchLabels: {app: data}}
  template:
    metadata: {labels: {app: data}}
    spec:
      nodeSelector: {kubernetes.io/hostname: e2e-n-worker-1}
      containers:
      - name: count
        image: my/app:dev
        imagePullPolicy: Never
        command: [/probe, count, /data/file]
        volumeMounts: [{name: file, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: file}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}`
