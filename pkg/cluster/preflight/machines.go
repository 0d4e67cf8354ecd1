package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const portRemedy = "give the node another port"

// NewNode returns the problems of the ports and mounts of a node that is added.
func NewNode(ctx context.Context, s *session.Session, n topology.Node) error {
	info, err := s.Engine.Facts(ctx)
	if err != nil {
		return s.NoAnswer(err)
	}
	one := []topology.Node{n}
	if on := (engineMachine{name: info.Name}); !on.here() {
		return errors.Join(portsTwice(one)...)
	}
	return errors.Join(append(portsTwice(one), mountsMissing(one), portsTaken(one))...)
}

// portsTwice returns a problem for each port of the engine's machine that two new
// nodes have.
func portsTwice(missing []topology.Node) (errs []error) {
	owner := map[config.PublishedPort]string{}
	for _, n := range missing {
		for _, text := range n.Spec.Ports {
			p, err := config.ParsePort(text)
			if err != nil {
				errs = append(errs, &step.Problem{Name: "node-port", Text: fmt.Sprintf("node %s: port %q %v", n.Name, text, err), Remedy: portRemedy})
				continue
			}
			p.NodePort = 0
			if other := owner[p]; other != "" {
				errs = append(errs, &step.Problem{Name: "node-port", Text: fmt.Sprintf("nodes %s and %s have the same port %s:%d/%s", other, n.Name, p.Address, p.Port, p.Protocol), Remedy: portRemedy})
			}
			owner[p] = n.Name
		}
	}
	return errs
}

// portsTaken returns a problem for each TCP port that a program of this machine
// has.
func portsTaken(missing []topology.Node) error {
	var errs []error
	for _, n := range missing {
		for _, text := range n.Spec.Ports {
			p, err := config.ParsePort(text)
			if err != nil || p.Protocol != "tcp" {
				continue
			}
			if err := host.PortFree(int(p.Port)); err != nil {
				errs = append(errs, &step.Problem{Name: "node-port", Text: fmt.Sprintf("node %s: port %q is taken on this machine: %v", n.Name, text, err), Remedy: portRemedy})
			}
		}
	}
	return errors.Join(errs...)
}

// mountsMissing returns a problem for each path to mount that does not exist on
// this machine.
func mountsMissing(missing []topology.Node) error {
	var errs []error
	for _, n := range missing {
		for _, text := range n.Spec.Mounts {
			m, err := config.ParseMount(text)
			if err == nil {
				_, err = os.Stat(m.Path)
			}
			if err != nil {
				errs = append(errs, &step.Problem{Name: "node-mount", Text: fmt.Sprintf("node %s: mount %q: %v", n.Name, text, err), Remedy: "create the directory, or omit the mount"})
			}
		}
	}
	return errors.Join(errs...)
}
