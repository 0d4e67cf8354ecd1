// Package preflight checks a cluster before a command changes it. The checks
// change nothing. They are functions of the desired and the observed nodes.
package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Mixed returns the problem that bare hosts and nodes would have the same cluster.
func Mixed(t topology.Topology, state topology.State) error {
	bare := map[bool]bool{}
	for _, n := range t.Nodes() {
		bare[n.Role == topology.Bare] = true
	}
	for _, n := range state.Nodes() {
		bare[n.Role == topology.Bare] = true
	}
	if len(bare) < 2 {
		return nil
	}
	return &step.Problem{Name: "cluster-hosts-mixed",
		Text: "a cluster consists of nodes or of bare hosts, and " + t.Cluster() + " would have both",
		Remedy: "use another --name, or remove the existing one with `kube-bootstrap cluster clean --name " +
			t.Cluster() + "`"}
}

// Grown rejects adding control planes to a cluster that has been up. A new
// cluster may add several at a time, but a cluster in use would lose its etcd
// quorum if one of several joining members failed.
func Grown(t topology.Topology, state topology.State, recorded []topology.Spec) []error {
	var names []string
	for _, n := range t.Missing(state) {
		known := slices.ContainsFunc(recorded, func(s topology.Spec) bool { return s.HostName(t.Cluster()) == n.Name })
		if n.Role == topology.ControlPlane && !known { // a recorded control plane that was lost is created again
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []error{&step.Problem{
		Name: "cluster-differs",
		Text: fmt.Sprintf("cluster %s has no control plane %s", t.Cluster(), strings.Join(names, ", ")),
		Remedy: "add one after the other with `kube-bootstrap node add --role control-plane --cluster " +
			t.Cluster() + "`",
	}}
}

// Differs returns the problem that the existing cluster has other settings; nil if it has not.
func Differs(cluster string, all []config.Difference) error {
	if len(all) == 0 {
		return nil
	}
	var texts []string
	remedy := "omit them to use the cluster as it is, or add --recreate, which removes the cluster and everything " +
		"in it but its saved snapshots"
	for _, d := range all {
		if d.Field == "kubernetesVersion" {
			remedy += "; `kube-bootstrap upgrade plan` on a control plane says what an upgrade changes, and " +
				"`kube-bootstrap cluster upgrade` does it"
		}
		texts = append(texts, fmt.Sprintf("%s is %s there and not %s", d.Name(), cmp.Or(d.InForce, "not set"), d.Given))
	}
	return &step.Problem{Name: "cluster-differs",
		Text: "cluster " + cluster + " exists with other settings: " + strings.Join(texts, ", "), Remedy: remedy}
}
