package cluster

import (
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// majority returns the number of members out of n that etcd needs for a quorum.
func majority(n int) int { return n/2 + 1 }

// mastersOn returns the number of running control planes other than m.
func (f *fleet) mastersOn(found []docker.FoundMachine, m member) (n int) {
	for _, other := range f.members() {
		if other.role == Master && other.name != m.name && running(found, other) {
			n++
		}
	}
	return n
}

// lastMaster reports whether no control plane would run without m.
func (f *fleet) lastMaster(m member, found []docker.FoundMachine) bool {
	return m.role == Master && f.mastersOn(found, m) == 0
}

func (f *fleet) lastProblem(m member, verb string) error {
	return &step.Problem{Name: "last-control-plane", Text: m.name + " is the last control plane that runs: without it there is no cluster",
		Remedy: "use `kube-bootstrap cluster down --name " + f.Name + "`, or " + verb + " it with --force"}
}

// canStop returns the problem that the API server would not answer without a
// control plane.
func (f *fleet) canStop(m member, found []docker.FoundMachine) error {
	if f.lastMaster(m, found) {
		return f.lastProblem(m, "stop")
	}
	return f.keepsQuorum(m, found, controlPlanes(f.members()), "stop")
}

// canRemove returns the problem that the remaining control planes would have no
// quorum without m. etcd itself would refuse the removal too, but only after
// the node was drained.
func (f *fleet) canRemove(m member, found []docker.FoundMachine) error {
	if f.lastMaster(m, found) {
		return f.lastProblem(m, "remove")
	}
	return f.keepsQuorum(m, found, controlPlanes(f.members())-1, "remove")
}

func (f *fleet) keepsQuorum(m member, found []docker.FoundMachine, members int, verb string) error {
	left := f.mastersOn(found, m)
	if m.role != Master || left >= majority(members) {
		return nil
	}
	return &step.Problem{
		Name:   "etcd-quorum",
		Text:   fmt.Sprintf("without %s %d of %d control planes would run, and etcd needs %d: the cluster would stand still", m.name, left, members, majority(members)),
		Remedy: "start the others first (`kube-bootstrap node list --cluster " + f.Name + "` lists them), or " + verb + " it with --force",
	}
}

// canStart returns the problem that the cluster would have no quorum even with
// m: no API server would report when the node is Ready.
func (f *fleet) canStart(m member, found []docker.FoundMachine) error {
	members, on := controlPlanes(f.members()), f.mastersOn(found, m)
	if m.role == Master {
		on++
	}
	if on >= majority(members) {
		return nil
	}
	return &step.Problem{
		Name:   "cluster-off",
		Text:   fmt.Sprintf("cluster %s is off: with %s %d of %d control planes would run, and etcd needs %d", f.Name, m.name, on, members, majority(members)),
		Remedy: "run `kube-bootstrap cluster up --name " + f.Name + "`, which starts all nodes",
	}
}
