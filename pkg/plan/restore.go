package plan

import (
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Recover returns the plan that makes this control plane the only one of its cluster, with the data of its etcd.
func Recover(h *local.Host) step.Plan {
	p := parts.New(h, local.ControlPlane)
	p.Etcd = p.Etcd.Alone()
	return slices.Concat(
		step.Plan{{recovery.BeginRecovery(h.Files)}},
		controlPlane(h, p, recovery.Recover(p.Etcd.Container)),
		step.Plan{{recovery.EndRecovery(h.Files)}},
	).Within(h.Timeout())
}

// Restore returns the plan that makes a bare host the control plane of the cluster in a backup. It is the plan of a
// first control plane, which finds the keys and the data of etcd on the host. snapshot is etcd's.
func Restore(h *local.Host, b *recovery.Backup, snapshot *os.File) step.Plan {
	created := ControlPlane(h)
	own := parts.New(h, local.ControlPlane).Etcd.Member
	return slices.Concat(
		step.Plan{{b.Begin(h.Files)}},
		created[:1], // saves the role
		b.Steps(h.Files, own, snapshot),
		created[1:],
		step.Plan{{recovery.End(h.Files)}},
	).Within(h.Timeout())
}
