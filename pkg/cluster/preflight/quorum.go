package preflight

import (
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// majority returns the number of members out of n that etcd needs for a quorum.
func majority(n int) int { return n/2 + 1 }

// mastersOn returns the number of running control planes other than n.
func mastersOn(t topology.Topology, is topology.State, n topology.Node) (on int) {
	for _, other := range t.Nodes() {
		if other.Role == topology.Master && other.Name != n.Name && is.Runs(other.Name) {
			on++
		}
	}
	return on
}

// LastMaster reports whether no control plane would run without n.
func LastMaster(t topology.Topology, is topology.State, n topology.Node) bool {
	return n.Role == topology.Master && mastersOn(t, is, n) == 0
}

func lastProblem(cluster string, n topology.Node, verb string) error {
	return &step.Problem{Name: "last-control-plane", Text: n.Name + " is the last control plane that runs: without it there is no cluster",
		Remedy: "use `kube-bootstrap cluster down --name " + cluster + "`, or " + verb + " it with --force"}
}

// CanStop returns the problem that the API server would not answer without a
// control plane.
func CanStop(t topology.Topology, is topology.State, n topology.Node) error {
	if LastMaster(t, is, n) {
		return lastProblem(t.Cluster(), n, "stop")
	}
	return keepsQuorum(t, is, n, t.Masters(), "stop")
}

// CanRemove returns the problem that the remaining control planes would have no
// quorum without n. etcd itself would refuse the removal too, but only after
// the node was drained.
func CanRemove(t topology.Topology, is topology.State, n topology.Node) error {
	if LastMaster(t, is, n) {
		return lastProblem(t.Cluster(), n, "remove")
	}
	return keepsQuorum(t, is, n, t.Masters()-1, "remove")
}

func keepsQuorum(t topology.Topology, is topology.State, n topology.Node, members int, verb string) error {
	left := mastersOn(t, is, n)
	if n.Role != topology.Master || left >= majority(members) {
		return nil
	}
	return &step.Problem{
		Name:   "etcd-quorum",
		Text:   fmt.Sprintf("without %s %d of %d control planes would run, and etcd needs %d: the cluster would stand still", n.Name, left, members, majority(members)),
		Remedy: "start the others first (`kube-bootstrap node list --cluster " + t.Cluster() + "` lists them), or " + verb + " it with --force",
	}
}

// CanStart returns the problem that the cluster would have no quorum even with
// n: no API server would report when the node is Ready.
func CanStart(t topology.Topology, is topology.State, n topology.Node) error {
	members, on := t.Masters(), mastersOn(t, is, n)
	if n.Role == topology.Master {
		on++
	}
	if on >= majority(members) {
		return nil
	}
	return &step.Problem{
		Name:   "cluster-off",
		Text:   fmt.Sprintf("cluster %s is off: with %s %d of %d control planes would run, and etcd needs %d", t.Cluster(), n.Name, on, members, majority(members)),
		Remedy: "run `kube-bootstrap cluster up --name " + t.Cluster() + "`, which starts all nodes",
	}
}
