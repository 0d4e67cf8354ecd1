package machines

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// absent returns the nodes of a cluster that the file does not have.
func absent(nodes []apiserver.NodeStatus, file []Machine) []apiserver.NodeStatus {
	return slices.DeleteFunc(slices.Clone(nodes), func(n apiserver.NodeStatus) bool {
		return slices.ContainsFunc(file, func(m Machine) bool { return m.Spec.Name == n.Name })
	})
}

// removedNodes returns the problems of machines that are set up, and whose nodes were removed from the
// cluster. The cluster refuses the credentials of such a machine.
func (r request) removedNodes(nodes []apiserver.NodeStatus) (errs []error) {
	for _, m := range r.machines {
		f := r.facts[m.Spec.Name]
		if f.Err == nil && f.installed() && len(without(nodes, m.Spec.Name)) == len(nodes) {
			errs = append(errs, problem(m, "node-removed", "it is set up, and its node is not in the cluster",
				"if the node was removed, run `kube-bootstrap node ssh "+m.Spec.Name+
					" -- kube-bootstrap turndown --yes`, and this command again"))
		}
	}
	return errs
}

// prune removes the nodes that the file does not have, if the options say so. It returns the names of
// those nodes, and the nodes that remain.
func (r *run) prune(
	ctx context.Context, api kube.Connect, nodes []apiserver.NodeStatus,
) (names []string, remain []apiserver.NodeStatus) {
	for _, n := range absent(nodes, r.request.machines) {
		names = append(names, n.Name)
		if !r.options.Prune {
			continue
		}
		err := r.apply(ctx, n.Name, removal(r.session, r.first.Spec.Name, api, n))
		r.failed.add(err)
		if err == nil {
			nodes = without(nodes, n.Name)
		}
	}
	return names, nodes
}

func without(nodes []apiserver.NodeStatus, name string) []apiserver.NodeStatus {
	return slices.DeleteFunc(slices.Clone(nodes), func(n apiserver.NodeStatus) bool { return n.Name == name })
}

// removal returns the plan that drains a node and revokes its credentials. The machine of the node is not in
// the file, so no command can run on it. A worker may still run: --compromised removes it all the same.
// A control plane must be off or turned down before.
func removal(
	s *session.Session, controlPlane string, api kube.Connect, n apiserver.NodeStatus,
) step.Plan {
	object := node.Node{API: api, Name: n.Name}
	args := []string{"forget", n.Name}
	if !n.ControlPlane {
		args = append(args, "--compromised")
	}
	forget := step.Always(step.IDOf("forget", n.Name), "forget "+n.Name, func(ctx context.Context) error {
		return remote.Run(ctx, s, controlPlane, args, nil)
	})
	return step.Plan{{object.Drain(node.Drain{Limit: step.DefaultLimit})}, {forget}}
}

// Hints names the next step for each node that the file does not have.
func (r Result) Hints(pruned bool) (lines []string) {
	for _, name := range r.Absent {
		line := "node " + name + " is not in the file: add it, or remove it with --prune"
		if pruned {
			line = "node " + name + " is not in the file; if it was removed, " +
				"run `kube-bootstrap turndown` on its machine"
		}
		lines = append(lines, line)
	}
	return lines
}
