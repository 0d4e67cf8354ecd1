package clusters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// Ready waits until all nodes and pods are ready.
func Ready(t *testing.T, on hosts.Machine, nodes int) {
	t.Helper()
	since := time.Now().UTC()
	wait.Until(t, 3*time.Minute, "nodes and pods", func() error { return AllReady(t, on, since, nodes) })
}

// PodsReady waits until all nodes and pods are Ready: a control plane waits for one pod of CoreDNS.
func PodsReady(t *testing.T, master hosts.Machine, nodes int) {
	t.Helper()
	wait.Until(t, 2*time.Minute, "all nodes and pods Ready",
		func() error { return AllReady(t, master, time.Now().Add(-time.Hour), nodes) })
}

const conditions = `{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status} ` +
	`{.status.conditions[?(@.type=="Ready")].lastTransitionTime}{"\n"}{end}`

// AllReady returns what is not Ready: nodes, pods, or a kubelet that has sent no heartbeat since that time.
func AllReady(t *testing.T, master hosts.Machine, since time.Time, nodes int) error {
	t.Helper()
	const get = "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf get "
	out, err := master.Try(t.Context(), get+"nodes -o 'jsonpath="+conditions+"' && echo && "+get+
		"pods -A -o 'jsonpath="+conditions+"'")
	if err != nil {
		return err
	}
	ready := strings.Count(out, " True ")
	if lines := len(strings.Fields(out)) / 3; ready != lines || lines < nodes+5 || strings.Contains(out, " False ") ||
		strings.Contains(out, " Unknown ") {
		return fmt.Errorf("not all is Ready:\n%s", out)
	}
	// A lease that was renewed after the reboot says that the kubelet is back.
	leases, err := master.Try(t.Context(), get+
		`leases -n kube-node-lease -o 'jsonpath={range .items[*]}{.spec.renewTime}{"\n"}{end}'`)
	if err != nil {
		return err
	}
	for _, text := range strings.Fields(leases) {
		if at, err := time.Parse(time.RFC3339, text); err != nil || at.Before(since) {
			return fmt.Errorf("a kubelet was last heard of at %s", text)
		}
	}
	return nil
}

// Spread waits until CoreDNS is Ready on two nodes: both of its pods were on the
// first one when the second joined.
func Spread(t *testing.T, master hosts.Machine) {
	t.Helper()
	const where = `{range .items[*]}{.spec.nodeName} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`
	wait.Until(t, time.Minute, "CoreDNS on two nodes", func() error {
		out, err := master.Try(t.Context(), "kubectl -n kube-system get pods -l k8s-app=kube-dns -o 'jsonpath="+
			where+"'")
		if on := strings.Fields(out); err == nil &&
			(len(on) != 4 || on[0] == on[2] || on[1] != "True" || on[3] != "True") {
			err = fmt.Errorf("it is on %v", on)
		}
		return err
	})
}
