package remote

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

// HostStatus is the status of one host of a cluster.
type HostStatus struct {
	Name   string          `json:"name"`
	Role   topology.Role   `json:"role"`
	Addr   netip.Addr      `json:"address"`
	State  string          `json:"state"` // of the container: "running", "exited"
	Image  string          `json:"image"`
	Report json.RawMessage `json:"report,omitempty"` // of `kube-bootstrap status -o json` on it
	Error  string          `json:"error,omitempty"`  // why there is no report
}

// Statuses returns the status of each node, in the same order.
func Statuses(ctx context.Context, s *session.Session, nodes []topology.NodeState) []HostStatus {
	all := make([]HostStatus, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { all[i] = Status(ctx, s, n) })
	}
	wg.Wait()
	return all
}

// Status returns the status of a node, with the report of kube-bootstrap if the node runs.
func Status(ctx context.Context, s *session.Session, n topology.NodeState) HostStatus {
	status := HostStatus{Name: n.Name, Role: n.Role, Addr: n.Addr, State: n.State, Image: n.Image}
	if !n.Running() || n.Role == topology.Bare {
		return status
	}
	// The command exits with an error if something is missing, and writes a report nevertheless.
	out, err := s.Node(n.Name).Output(ctx, BinaryPath, "status", "-o", "json")
	if json.Valid([]byte(out)) {
		status.Report = json.RawMessage(out)
	} else if err != nil {
		status.Error = err.Error()
	}
	return status
}
