package machines

import (
	"context"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Only restricts a selection of machines to one, so that no other machine needs to answer. A selection
// of containers stays as it is.
func Only(o session.Selection, name string) (session.Selection, error) {
	all, ok := o.Provider.(Choice)
	if !ok {
		return o, nil
	}
	if err := Listed(o, name); err != nil {
		return o, err
	}
	one := all
	one.Machines = slices.DeleteFunc(slices.Clone(all.Machines), func(m Machine) bool { return m.Spec.Name != name })
	o.Provider = one
	return o, nil
}

// ShellOn runs a command on a machine in a new terminal. Its status is an *access.ExitError. It needs
// only this machine to answer.
func ShellOn(ctx context.Context, o session.Selection, name string, shell host.Shell) error {
	s, err := session.Open(o, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := Of(s)
	if err != nil {
		return err
	}
	if err := Listed(o, name); err != nil {
		return err
	}
	err = p.access[name].Shell(ctx, shell)
	if code, ok := errors.AsType[ssh.ExitCode](err); ok {
		return &access.ExitError{Node: name, Code: int(code), Err: err}
	}
	return err
}

// listed returns the nodes of the file, without a connection to any.
func (p *Provider) listed() (all []topology.NodeState) {
	for _, m := range p.choice.Machines {
		node := topology.ClusterNode{Name: m.Spec.Name, Role: m.Spec.Role, Spec: m.Spec}
		all = append(all, topology.NodeState{ClusterNode: node})
	}
	return all
}

// Listed returns the problem that the file has no node of this name; nil if it has.
func Listed(o session.Selection, name string) error {
	c, ok := o.Provider.(Choice)
	if !ok {
		return nil
	}
	p := &Provider{choice: c}
	if _, err := topology.Observed(p.listed()).Topology(o.Name).Pick(name); err != nil {
		found := step.Problems(err)[0]
		found.Remedy += ", or add " + name + " to nodes of the file"
		return found
	}
	return nil
}

// ControlPlane returns the name of a control plane that answers.
func ControlPlane(ctx context.Context, o session.Selection) (string, error) {
	return session.Get(ctx, o, session.Requirements{Needs: session.Nodes},
		func(s *session.Session, _ topology.State) (string, error) {
			n, err := s.RunningControlPlane(ctx, "")
			return n.Name, err
		})
}
