package requirements

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const portRemedy = "give the node another port"

// loopback is the address on which an engine of this machine publishes the ports of
// the API server and of the local registry.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// NewNode returns the problems of the ports and mounts of a node that is added.
func NewNode(ctx context.Context, c containers.Cluster, n topology.ClusterNode) error {
	engine, err := machineOf(ctx, c)
	if err != nil {
		return err
	}
	one := []topology.ClusterNode{n}
	errs := portsTwice(one)
	if engine.here {
		errs = append(errs, mountsMissing(one), portsTaken(one))
	}
	return errors.Join(errs...)
}

// portsTwice returns a problem for each port of the engine's machine that two nodes have.
func portsTwice(missing []topology.ClusterNode) (errs []error) {
	owner := map[config.PublishedPort]string{}
	for _, n := range missing {
		for _, p := range n.Spec.Ports {
			p.NodePort = 0
			if other := owner[p]; other != "" {
				errs = append(errs, &step.Problem{
					Name: "node-port", Text: fmt.Sprintf("nodes %s and %s have the same port %s:%d/%s", other, n.Name,
						p.Address, p.Port, p.Protocol), Remedy: portRemedy,
				})
			}
			owner[p] = n.Name
		}
	}
	return errs
}

// portsTaken returns a problem for each TCP port that a program of this machine has.
func portsTaken(missing []topology.ClusterNode) error {
	var errs []error
	for _, n := range missing {
		for _, p := range n.Spec.Ports {
			if p.Protocol != "tcp" {
				continue
			}
			if err := host.PortFree(netip.AddrPortFrom(p.Address, p.Port)); err != nil {
				errs = append(errs, &step.Problem{
					Name: "node-port", Text: fmt.Sprintf("node %s: port %q is taken on this machine: %v",
						n.Name, p.String(), err), Remedy: portRemedy,
				})
			}
		}
	}
	return errors.Join(errs...)
}

// mountsMissing returns a problem for each path to mount that this machine does not have.
func mountsMissing(missing []topology.ClusterNode) error {
	var errs []error
	for _, n := range missing {
		for _, m := range n.Spec.Mounts {
			if _, err := os.Stat(m.Path); err != nil {
				errs = append(errs, &step.Problem{
					Name: "node-mount", Text: fmt.Sprintf("node %s: mount %q: %v", n.Name, m.String(), err),
					Remedy: "create the directory, or omit the mount",
				})
			}
		}
	}
	return errors.Join(errs...)
}

// portTaken checks that the requested API port is free, unless the load balancer has it. A remote
// engine publishes the port on another machine.
func (c checks) portTaken(ctx context.Context) error {
	if !c.Publish || c.engine.remote {
		return nil
	}
	if loadBalancer, _, err := c.Cluster.Attached(ctx, containers.LoadBalancerName(c.Cluster.Name)); err != nil ||
		slices.Contains(slices.Collect(maps.Values(loadBalancer.Ports)), uint16(c.APIPort)) {
		return err
	}
	err := host.PortFree(netip.AddrPortFrom(loopback, uint16(c.APIPort)))
	if err == nil {
		return nil
	}
	return &step.Problem{Name: "cluster-port", Text: fmt.Sprintf("--apiserver-port %d is taken on this machine: %v",
		c.APIPort, err),
		Remedy: "use another one, or leave it out"}
}

// registryPort checks that the port of the local registry is free, unless the registry has it.
func (c checks) registryPort(ctx context.Context) ([]error, error) {
	if c.Registry.Port == 0 {
		return nil, nil
	}
	taken := c.samePort()
	if taken == nil {
		now, _, err := c.Cluster.Attached(ctx, testhost.RegistryName(c.Cluster.Name))
		own := now.Running && slices.Contains(slices.Collect(maps.Values(now.Ports)), uint16(c.Registry.Port))
		if err != nil || !c.engine.here || own {
			return nil, err
		}
		taken = host.PortFree(netip.AddrPortFrom(loopback, uint16(c.Registry.Port)))
	}
	if taken == nil {
		return nil, nil
	}
	return []error{testhost.RegistryPortTaken(c.Registry.Port, taken)}, nil
}

// samePort returns what else of the cluster is to have the port of the registry.
func (c checks) samePort() error {
	if c.Publish && c.APIPort == c.Registry.Port {
		return errors.New("it is the port of the API server too")
	}
	for _, n := range c.Topology.Nodes() {
		for _, p := range n.Spec.Ports {
			if p.Protocol == "tcp" && int(p.Port) == c.Registry.Port {
				return fmt.Errorf("it is a port of node %s too", n.Name)
			}
		}
	}
	return nil
}
