package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// majority returns the number of members out of n that etcd needs for a quorum.
func majority(n int) int { return n/2 + 1 }

// controlPlanesOn returns the number of running control planes other than n.
func controlPlanesOn(t topology.Topology, is topology.State, n topology.ClusterNode) (on int) {
	for _, other := range t.Nodes() {
		if other.Role == topology.ControlPlane && other.Name != n.Name && is.Runs(other.Name) {
			on++
		}
	}
	return on
}

// LastControlPlane reports whether no control plane would run without n.
func LastControlPlane(t topology.Topology, is topology.State, n topology.ClusterNode) bool {
	return n.Role == topology.ControlPlane && controlPlanesOn(t, is, n) == 0
}

// CanStop returns the problem that the API server would not answer without n.
func CanStop(t topology.Topology, is topology.State, n topology.ClusterNode) error {
	return canMiss(t, is, n, t.ControlPlanes(), "stop")
}

// CanRemove returns the problem that the remaining control planes would have no
// quorum without n. etcd itself would refuse the removal too, but only after
// the node was drained.
func CanRemove(t topology.Topology, is topology.State, n topology.ClusterNode) error {
	return canMiss(t, is, n, t.ControlPlanes()-1, "remove")
}

func canMiss(t topology.Topology, is topology.State, n topology.ClusterNode, members int, verb string) error {
	if LastControlPlane(t, is, n) {
		return &step.Problem{Name: "last-control-plane",
			Text:   n.Name + " is the last control plane that runs: without it there is no cluster",
			Remedy: "use `kube-bootstrap cluster down --name " + t.Cluster() + "`, or " + verb + " it with --force"}
	}
	left := controlPlanesOn(t, is, n)
	if n.Role != topology.ControlPlane || left >= majority(members) {
		return nil
	}
	return &step.Problem{
		Name: "etcd-quorum",
		Text: fmt.Sprintf("without %s %d of %d control planes would run, and etcd needs %d: the cluster would "+
			"stand still", n.Name, left, members, majority(members)),
		Remedy: "start the others first (`kube-bootstrap node list --cluster " + t.Cluster() + "` lists them), or " +
			verb + " it with --force",
	}
}

// CanStart returns the problem that the cluster would have no quorum even with
// n: no API server would report when the node is Ready.
func CanStart(t topology.Topology, is topology.State, n topology.ClusterNode) error {
	members, on := t.ControlPlanes(), controlPlanesOn(t, is, n)
	if n.Role == topology.ControlPlane {
		on++
	}
	if on >= majority(members) {
		return nil
	}
	return &step.Problem{
		Name: "cluster-off",
		Text: fmt.Sprintf("cluster %s is off: with %s %d of %d control planes would run, and etcd needs %d",
			t.Cluster(), n.Name, on, members, majority(members)),
		Remedy: "run `kube-bootstrap cluster up --name " + t.Cluster() + "`, which starts all nodes",
	}
}

// LostQuorum returns the problem that too many control planes are off for etcd
// to have a quorum [etcd-quorum]. It asks a running control plane, because only
// etcd knows which of the hosts that are off are members.
func LostQuorum(ctx context.Context, s *session.Session, is topology.State) error {
	var on []topology.NodeState
	var off []string
	for _, n := range is.Nodes() {
		switch {
		case n.Role != topology.ControlPlane:
		case n.Running():
			on = append(on, n)
		default:
			off = append(off, n.Name)
		}
	}
	lacks := majority(len(on)+len(off)) - len(on)
	if len(on) == 0 || lacks <= 0 {
		return nil
	}
	if report, err := remote.Status(ctx, s, on[0]).Read(); err != nil || report.Quorum == "" {
		return nil
	}
	remedy := "run `kube-bootstrap cluster up --name " + s.Name + "`, which starts all nodes"
	if lacks == 1 {
		remedy = "run `kube-bootstrap node start " + off[0] + " --cluster " + s.Name + "`"
	}
	return &step.Problem{
		Name: "etcd-quorum",
		Text: fmt.Sprintf("etcd of cluster %s has no quorum: %s off, and %d of %d control planes must run",
			s.Name, areOff(off), len(on)+lacks, len(on)+len(off)),
		Remedy: remedy,
	}
}

func areOff(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}
