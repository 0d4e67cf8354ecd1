package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
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

// Status returns the status of a node, with the report of kube-bootstrap on it
// if it runs.
func Status(ctx context.Context, s *session.Session, n topology.NodeState) HostStatus {
	status := HostStatus{Name: n.Name, Role: n.Role, Addr: n.Addr, State: n.State, Image: n.Image}
	if !n.Running() || n.Role == topology.Bare {
		return status
	}
	var out bytes.Buffer
	// The command exits with an error if something is missing, and writes a report nevertheless.
	err := s.Node(n.Name).Exec(ctx, driver.Exec{Args: []string{BinaryPath, "status", "-o", "json"}, Stdout: &out})
	if json.Valid(out.Bytes()) {
		status.Report = out.Bytes()
	} else if err != nil {
		status.Error = err.Error()
	}
	return status
}
