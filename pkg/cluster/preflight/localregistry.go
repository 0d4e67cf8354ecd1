package preflight

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// registryPort returns the problem that the port of the local registry is in use,
// unless the registry itself has it. here tells that the engine runs on this
// machine.
func (u Up) registryPort(ctx context.Context, s *session.Session, here bool) ([]error, error) {
	if u.RegistryPort == 0 {
		return nil, nil
	}
	if err := u.samePort(); err != nil {
		return []error{testhost.RegistryPortTaken(u.RegistryPort, err)}, nil
	}
	now, _, err := s.Cluster().Attached(ctx, testhost.RegistryName(s.Name))
	if err != nil || !here || now.Running && hasPort(now.Ports, u.RegistryPort) {
		return nil, err
	}
	if err := host.PortFree(u.RegistryPort); err != nil {
		return []error{testhost.RegistryPortTaken(u.RegistryPort, err)}, nil
	}
	return nil, nil
}

func hasPort(ports map[uint16]uint16, port int) bool {
	for _, outside := range ports {
		if int(outside) == port {
			return true
		}
	}
	return false
}

// samePort returns what else of the cluster is to have the port of the registry.
func (u Up) samePort() error {
	if u.Publish && u.APIPort == u.RegistryPort {
		return errors.New("it is the port of the API server too")
	}
	for _, n := range u.Topology.Nodes() {
		for _, text := range n.Spec.Ports {
			if p, err := config.ParsePort(text); err == nil && p.Protocol == "tcp" && int(p.Port) == u.RegistryPort {
				return fmt.Errorf("it is a port of node %s too", n.Name)
			}
		}
	}
	return nil
}
