package testhost

import (
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Setup describes what the hosts of a cluster have in common.
type Setup struct {
	Topology topology.Topology
	Files    []SharedFile
	Binary   string // kube-bootstrap; "": the cluster has no front
	APIPort  int
	Publish  bool // publish APIPort on the engine's machine
	Registry RegistrySettings
}

// Front returns the step that starts the front in a network. A cluster of bare
// hosts has none.
func (u Setup) Front(s *session.Session, subnet netip.Prefix) []step.Step {
	if u.Binary == "" {
		return nil
	}
	return []step.Step{front{s, subnet, u.Binary, u.APIPort, u.Publish}.step()}
}

// LocalRegistry returns the step that starts the local registry in a network, or
// removes it.
func (u Setup) LocalRegistry(s *session.Session, subnet netip.Prefix) []step.Step {
	if u.Binary == "" {
		return nil
	}
	return []step.Step{localRegistry{s, u.Binary, subnet, u.Registry}.step()}
}
