package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// LostQuorum returns the problem that too many control planes are off for etcd
// to have a quorum [etcd-quorum]. It asks a running control plane, because only
// etcd knows which of the hosts that are off are members.
func LostQuorum(ctx context.Context, s *session.Session, is topology.State) error {
	var on []topology.NodeState
	var off []string
	for _, n := range is.Nodes() {
		switch {
		case n.Role != topology.Master:
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
	var report struct{ Quorum string }
	if err := json.Unmarshal(remote.Status(ctx, s, on[0]).Report, &report); err != nil || report.Quorum == "" {
		return nil
	}
	remedy := "run `kube-bootstrap cluster up --name " + s.Name + "`, which starts all nodes"
	if lacks == 1 {
		remedy = "run `kube-bootstrap node start " + off[0] + " --cluster " + s.Name + "`"
	}
	return &step.Problem{
		Name:   "etcd-quorum",
		Text:   fmt.Sprintf("etcd of cluster %s has no quorum: %s off, and %d of %d control planes must run", s.Name, areOff(off), len(on)+lacks, len(on)+len(off)),
		Remedy: remedy,
	}
}

func areOff(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}
