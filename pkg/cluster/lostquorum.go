package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// lostQuorum returns the problem that too many control planes are off for etcd
// to have a quorum [etcd-quorum]. It asks a running control plane, because only
// etcd knows which of the hosts that are off are members.
func (f *fleet) lostQuorum(ctx context.Context, found []docker.FoundMachine) error {
	var on []docker.FoundMachine
	var off []string
	for _, m := range found {
		switch {
		case specOf(m).Role != Master:
		case m.State == "running":
			on = append(on, m)
		default:
			off = append(off, m.Name)
		}
	}
	lacks := majority(len(on)+len(off)) - len(on)
	if len(on) == 0 || lacks <= 0 {
		return nil
	}
	var report struct{ Quorum string }
	if err := json.Unmarshal(f.hostStatus(ctx, on[0]).Report, &report); err != nil || report.Quorum == "" {
		return nil
	}
	remedy := "run `kube-bootstrap cluster up --name " + f.Name + "`, which starts all nodes"
	if lacks == 1 {
		remedy = "run `kube-bootstrap node start " + off[0] + " --cluster " + f.Name + "`"
	}
	return &step.Problem{
		Name:   "etcd-quorum",
		Text:   fmt.Sprintf("etcd of cluster %s has no quorum: %s off, and %d of %d control planes must run", f.Name, areOff(off), len(on)+lacks, len(on)+len(off)),
		Remedy: remedy,
	}
}

func areOff(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}
