//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// refusals runs commands that are refused before anything is touched.
func (l clusterUser) refusals(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for command, want := range map[string]string{
		"node add --name worker-1":                      "there is a node e2e-n-worker-1 already",
		"node add --name p --node-port 18080:80":        "is taken on this machine",
		"node add --name p --node-mount /no/such:/data": "[node-mount]",
		"node remove master-1":                          "is the last control plane that runs",
		"node remove db --force": "this removes host e2e-n-db with its " +
			"volumes, and there is no terminal to confirm that on; add --yes",
		"cluster clean": "this removes host e2e-n-db with its " +
			"volumes, host e2e-n-master-1 with its volumes, ",
		"cluster up --recreate": "add --yes to remove that [confirmation]",
		"node stop master-1":    "is the last control plane that runs",
		"node stop nobody": "cluster e2e-n has no node nobody; " +
			"use one of e2e-n-",
		"node list --cluster e2e-none --output no": "must be table, json, yaml",
		"node stop worker-1 --cluster e2e-none": "cluster e2e-none does not exist; " +
			"this engine has ",
		"cluster clean --name e2e-none": "cluster e2e-none does not exist; " +
			"this engine has ",
		"cluster down --name e2e-none": "cluster e2e-none does not exist; " +
			"this engine has ",
		"cluster status --name e2e-none": "cluster e2e-none does not exist; " +
			"this engine has ",
		"cluster snapshot list --name e2e-none": "cluster e2e-none does not exist; " +
			"this engine has ",
		"node list --cluster e2e-none": "cluster e2e-none does not exist; " +
			"this engine has ",
		"node ssh worker-1 --cluster e2e-none": "cluster e2e-none does not exist; " +
			"this engine has ",
		"node ssh master-1 -- kube-bootstrap forget e2e-n-worker-1": "[node-alive]",
		"cluster load-image no/such:image":                          "the engine has no image no/such:image",
		"cluster load-image no/such:image --from db":                "node e2e-n-db has no image no/such:image",
		"cluster up --name e2e-other":                               "overlaps with",
		"cluster up --name e2e-big -f big.yaml":                     "nodes need",
		"node docker-env master-9":                                  "has no node master-9",
		"cluster kubeconfig --name e2e-none": "cluster e2e-none does not exist; " +
			"this engine has ",
		fmt.Sprint("cluster up --name e2e-p --api-server-port ", port): "is taken on this machine",
		fmt.Sprint("cluster up --name e2e-p --local-registry ", port):  "[local-registry-port]",
		"cluster up --registry-mirror docker.io=mirror":                "must be REGISTRY=HOST",
		"cluster up --masters 9":                                       "use 1 to ",
		"cluster up --kubernetes-version v1.35.4": "cluster e2e-n exists with other settings: " +
			"--kubernetes-version is ",
		"cluster up --flannel-backend host-gw":   "--flannel-backend is vxlan there and not host-gw; omit them",
		"cluster up --dind-subnet 10.220.0.0/16": "--dind-subnet is 10.212.0.0/16 there and not 10.220.0.0/16",
		"cluster up --workers 0":                 "has 2 nodes of the role worker and not 0 (--workers)",
	} {
		out, err := l.Try(t.Context(), "printf '"+tooBig+"' >big.yaml; kube-bootstrap "+command+" 2>&1; rm big.yaml")
		if err == nil || !strings.Contains(out+err.Error(), want) {
			t.Errorf("%s: %v\n%s\nwant %q", command, err, out, want)
		}
	}
}

// staysSchedulable runs `node stop` for nodes that cannot be drained: because
// of a pod without a controller, of a disruption budget that allows no
// eviction, and of pods that do not end in time.
func (l clusterUser) staysSchedulable(t *testing.T) {
	schedulable := func() {
		t.Helper()
		if out := l.Sh(t, "kubectl get nodes -o 'jsonpath={range .items[*]}{.spec.unschedulable}{end}'"); out != "" {
			t.Errorf("a node stays cordoned: %s", out)
		}
	}
	l.Sh(t, "kubectl run alone --image my/app:dev --image-pull-policy Never --overrides '"+
		`{"spec":{"nodeName":"e2e-n-worker-1"}}`+
		"' -- /probe serve; kubectl wait --for condition=Ready pod/alone --timeout 300s")
	l.Refused(t, "node stop worker-1", "[pods-lost]")
	l.Refused(t, "node remove worker-1", "[pods-lost]")
	schedulable()
	on := strings.TrimPrefix(l.Sh(t, "kubectl get pods -l app=web -o 'jsonpath={.items[0].spec.nodeName}'"), "e2e-n-")
	const budget = `kubectl patch poddisruptionbudget web -p '{"spec":{"minAvailable":%d}}'`
	l.Sh(t, fmt.Sprintf(budget, 2)+"; kubectl wait --for jsonpath='{.status.desiredHealthy}'=2 "+
		"poddisruptionbudget/web --timeout 300s")
	l.Refused(t, "node stop "+on+" --lose-pods", "[disruption-budget]")
	schedulable()
	l.Sh(t, fmt.Sprintf(budget, 1)+"; kubectl wait --for jsonpath='{.status.desiredHealthy}'=1 "+
		"poddisruptionbudget/web --timeout 300s")
	out, err := l.Try(t.Context(), "kube-bootstrap node stop "+on+" --lose-pods --timeout 1s 2>&1")
	if err == nil || !strings.Contains(out+err.Error(), "the node takes pods again") {
		t.Errorf("its pods take ten seconds to end, it has one: %v\n%s", err, out)
	}
	schedulable()
	l.Sh(t, "kube-bootstrap node stop worker-1 --lose-pods; if kubectl get pod alone; then exit 1; fi; "+
		"kube-bootstrap node start worker-1")
}

// unreachable makes a node drop packets to the port of its Docker.
func (l clusterUser) unreachable(t *testing.T) {
	const rule = "kube-bootstrap node ssh db -- iptables %s INPUT -p tcp --dport 2376 -j DROP"
	l.Sh(t, fmt.Sprintf(rule, "-I"))
	l.Refused(t, "node docker-env db", "[node-unreachable]")
	l.Sh(t, fmt.Sprintf(rule, "-D"))
}

const tooBig = `apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\ndindSubnet: 10.213.0.0/16\nnodes:\n- {role: ` +
	`control-plane, memory: 9000Gi, disk: 9000Ti}\n`
