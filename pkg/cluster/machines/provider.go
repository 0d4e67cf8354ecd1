// Package machines is the provider of nodes that are machines, which a configuration file lists. It
// reaches them over SSH, and runs there the host commands of kube-bootstrap.
//
//	Up -> lock and facts of all machines -> problems of all -> program, bundle -> preflight of new ones
//	   -> first control plane -> further ones, one after the other -> workers concurrently
package machines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Machine is one machine of a configuration file.
type Machine struct {
	Spec     topology.Spec
	SSH      connection.SSH
	Settings config.Config // the settings of the node itself, such as its labels
}

// Choice selects the machines of a configuration file, in its order.
type Choice struct {
	Cluster     string
	Machines    []Machine
	Ask         ssh.Questions // nil: there is no terminal
	Connections *Connections  // nil: each provider opens and closes its own
}

// Connections holds the SSH connections that all sessions of one command share. They stay open until the
// process ends.
type Connections struct {
	mu     sync.Mutex
	access map[string]*ssh.Machine // by the names of the nodes
}

// Open opens the provider. It does not connect yet.
func (c Choice) Open() (provider.Provider, error) {
	p := &Provider{choice: c}
	if c.Connections == nil {
		return p, p.open()
	}
	c.Connections.mu.Lock()
	defer c.Connections.mu.Unlock()
	if p.access = c.Connections.access; p.access != nil {
		return p, nil
	}
	err := p.open()
	c.Connections.access, p.network = p.access, nil
	return p, err
}

// open sets the access to each machine.
func (p *Provider) open() error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	network, err := ssh.New(home, p.choice.Ask)
	if err != nil {
		return err
	}
	access := map[string]*ssh.Machine{}
	for _, m := range p.choice.Machines {
		if access[m.Spec.Name], err = network.Machine(m.Spec.Name, m.Spec.Address, m.SSH); err != nil {
			return errors.Join(err, network.Close())
		}
	}
	p.network, p.access = network, access
	return nil
}

// Provider has the one cluster of a configuration file.
type Provider struct {
	choice  Choice
	network *ssh.Network            // nil: Connections has it
	access  map[string]*ssh.Machine // by the names of the nodes

	mu    sync.Mutex
	facts map[string]Facts // by the names of the nodes; nil: not asked yet
}

// Of returns the provider of a session, or the problem that its nodes are no machines.
func Of(s *session.Session) (*Provider, error) {
	p, ok := s.Provider.(*Provider)
	if !ok {
		return nil, &step.Problem{Name: "machines", Text: "the nodes of cluster " + s.Name + " are no machines",
			Remedy: "name a configuration file with machines by -f", Firm: true}
	}
	return p, nil
}

// stateOff is the State of a machine that does not answer, beside those of topology.
const stateOff = "off"

// Clusters returns the cluster of the file.
func (p *Provider) Clusters(ctx context.Context) ([]provider.ClusterInfo, error) {
	nodes, err := p.Nodes(ctx, p.choice.Cluster)
	return []provider.ClusterInfo{{Name: p.choice.Cluster, Nodes: nodes}}, err
}

// Nodes returns all machines of the file.
func (p *Provider) Nodes(ctx context.Context, cluster string) (topology.State, error) {
	if cluster != p.choice.Cluster {
		return topology.State{}, nil
	}
	facts, err := p.Facts(ctx)
	if err != nil {
		return topology.State{}, err
	}
	var all []topology.NodeState
	for _, m := range p.choice.Machines {
		f := facts[m.Spec.Name]
		if f.Err != nil && !f.off() {
			err = errors.Join(err, f.Err)
		}
		node := topology.ClusterNode{Name: m.Spec.Name, Role: m.Spec.Role, Addr: f.Addr, Spec: m.Spec}
		all = append(all, topology.NodeState{ClusterNode: node, State: f.state()})
	}
	return topology.Observed(all), err
}

// Exists reports whether the file has this cluster.
func (p *Provider) Exists(_ context.Context, cluster string) (bool, error) {
	return cluster == p.choice.Cluster, nil
}

// programDir is the directory of kube-bootstrap on machines. Clean removes it.
const programDir = "/usr/local/lib/kube-bootstrap"

// Paths below programDir.
const (
	programFile = "bin/kube-bootstrap"
	bundleFile  = "bundle.tar.zst"
)

// ProgramPath is the path of kube-bootstrap on every machine.
func (p *Provider) ProgramPath() string { return programDir + "/" + programFile }

// OnThisMachine reports false: root of a machine has no rights on this one.
func (p *Provider) OnThisMachine() bool { return false }

// ConsoleLog returns nothing: a dump has the journal of the machine.
func (p *Provider) ConsoleLog(context.Context, string, int) string { return "" }

// Owns returns nil: the file determines which machines belong to the cluster.
func (p *Provider) Owns(context.Context, string, string) error { return nil }

// NoAnswer returns the error, which names the machine.
func (p *Provider) NoAnswer(err error) error { return err }

// Notes returns notes that are always empty: each machine keeps its own settings.
func (p *Provider) Notes(string) provider.Notes { return noNotes{} }

type noNotes struct{}

func (noNotes) All(context.Context) (map[string]string, error) { return map[string]string{}, nil }

func (noNotes) Set(_ context.Context, key, _ string) error {
	return fmt.Errorf("note %s: a cluster of machines has no notes", key)
}

func (noNotes) Forget(context.Context, string) error { return nil }

// URL returns the URL of the first control plane whose API server this machine reaches. If it reaches
// none, such as behind a hop, the URL is that of the first control plane.
func (p *Provider) URL(ctx context.Context, cluster string) (string, error) {
	facts, err := p.Facts(ctx)
	if err != nil {
		return "", err
	}
	first := ""
	for _, m := range p.choice.Machines {
		f := facts[m.Spec.Name]
		if m.Spec.Role != topology.ControlPlane || f.state() != topology.StateRunning {
			continue
		}
		address := net.JoinHostPort(f.Addr.String(), strconv.Itoa(f.Settings.APIServerPort))
		if answers(ctx, address) {
			return "https://" + address, nil
		}
		if first == "" {
			first = "https://" + address
		}
	}
	if first == "" {
		return "", fmt.Errorf("no control plane of cluster %s answers", cluster)
	}
	return first, nil
}

func answers(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Dial connects to an API server from a control plane, because this machine may have no route to it.
func (p *Provider) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	state, err := p.Nodes(ctx, p.choice.Cluster)
	if err != nil {
		return nil, err
	}
	n, ok := state.RunningControlPlane("")
	if !ok {
		return nil, fmt.Errorf("no control plane of cluster %s answers", p.choice.Cluster)
	}
	return p.access[n.Name].Dial(ctx, network, address)
}

// Close ends the connections that the provider has for itself.
func (p *Provider) Close() error {
	if p.network == nil {
		return nil
	}
	var errs []error
	for _, m := range p.access {
		errs = append(errs, m.Close())
	}
	return errors.Join(append(errs, p.network.Close())...)
}

// Node returns the access to a machine by the name of its node.
func (p *Provider) Node(name string) access.Connection { return machineNode{p.access[name], name} }

// machineNode is the access to a machine; nil if there is none of this name.
type machineNode struct {
	machine *ssh.Machine
	name    string
}

func (n machineNode) Exec(ctx context.Context, cmd host.Command) error {
	if n.machine == nil {
		return fmt.Errorf("node %s: %w", n.name, errdefs.ErrNotFound)
	}
	err := n.machine.Exec(ctx, cmd)
	if code, ok := errors.AsType[ssh.ExitCode](err); ok {
		return &access.ExitError{Node: n.name, Code: int(code), Err: err}
	}
	return err
}

func (n machineNode) Put(ctx context.Context, path string, mode os.FileMode, content io.ReadSeeker) error {
	return access.PutByCommand(ctx, n, path, mode, content)
}

func (n machineNode) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return access.GetByCommand(ctx, n, path)
}

// Close does nothing: the provider closes all connections.
func (n machineNode) Close() error { return nil }
