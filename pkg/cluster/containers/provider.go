// Package containers is the provider of nodes that are containers on a Docker engine. Whatever only
// such nodes have is in the packages below it: their machines, images, disks, snapshots, the load
// balancer and the local registry.
//
//	commands -> snapshot -> requirements -> testhost    -> containers -> machines -> docker
//	                                     -> dockertools
package containers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// EngineChoice selects the engine that runs the nodes. The zero value is the engine of the docker command.
type EngineChoice struct{ docker.Choice }

// Open opens the provider of the engine. It does not connect yet.
func (c EngineChoice) Open() (provider.Provider, error) {
	engine, err := c.Choice.Open()
	if err != nil {
		return nil, &step.Problem{
			Name: "engine", Text: err.Error(), Remedy: "correct --docker-host, --docker-context or DOCKER_HOST",
		}
	}
	return DockerProvider{engine}, nil
}

// DockerProvider has the clusters of one engine.
type DockerProvider struct{ Engine *docker.Engine }

// Clusters returns the clusters that have hosts or networks on the engine.
func (p DockerProvider) Clusters(ctx context.Context) ([]provider.ClusterInfo, error) {
	found, err := machines.All(ctx, p.Engine)
	if err != nil {
		return nil, err
	}
	networks, err := p.Engine.Networks(ctx)
	return clusters(networks, found), err
}

// clusters returns the clusters of networks and hosts. Hosts without their network are remains,
// because the network is removed last.
func clusters(networks []docker.Network, found []machines.EngineContainer) []provider.ClusterInfo {
	all := map[string]provider.ClusterInfo{}
	for _, m := range found {
		all[m.Cluster] = provider.ClusterInfo{Name: m.Cluster, Nodes: stateOf(m.Cluster, found), Remains: true}
	}
	for _, n := range networks {
		c := provider.ClusterInfo{Name: n.Cluster, Nodes: stateOf(n.Cluster, found), Remains: len(n.Subnets) == 0}
		if !c.Remains {
			c.Subnet = n.Subnets[0]
		}
		all[n.Cluster] = c
	}
	delete(all, "") // what belongs to no cluster
	return slices.SortedFunc(maps.Values(all),
		func(a, b provider.ClusterInfo) int { return cmp.Compare(a.Name, b.Name) })
}

// Nodes returns the hosts of a cluster, running or not.
func (p DockerProvider) Nodes(ctx context.Context, cluster string) (topology.State, error) {
	found, err := machines.All(ctx, p.Engine)
	if err != nil {
		return topology.State{}, err
	}
	return stateOf(cluster, found), nil
}

// specLabel is the label of a container that holds its topology.Spec.
const specLabel = "kube-bootstrap.dev/node"

// Labels returns the container labels that store the settings of a node.
func Labels(s topology.Spec) map[string]string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return map[string]string{specLabel: string(data)}
}

// stateOf returns the nodes of a cluster. A container without a stored Spec is a bare host.
func stateOf(cluster string, found []machines.EngineContainer) topology.State {
	var nodes []topology.NodeState
	for _, m := range found {
		if m.Cluster != cluster {
			continue
		}
		spec := topology.Spec{Name: m.Name, Role: topology.Bare}
		_ = json.Unmarshal([]byte(m.Labels[specLabel]), &spec)
		node := topology.ClusterNode{Name: m.Name, Role: spec.Role, Addr: m.Addr, Spec: spec}
		nodes = append(nodes, topology.NodeState{ClusterNode: node, State: m.State, Image: m.Image})
	}
	return topology.Observed(nodes)
}

// Exists reports whether the engine has any container, network, volume or image of a cluster.
func (p DockerProvider) Exists(ctx context.Context, cluster string) (bool, error) {
	all, err := p.Clusters(ctx)
	if err != nil || slices.ContainsFunc(all, func(c provider.ClusterInfo) bool { return c.Name == cluster }) {
		return err == nil, err
	}
	parts := machines.Of(p.Engine, cluster)
	volumes, err := parts.Volumes.List(ctx)
	if err != nil || len(volumes) > 0 {
		return err == nil, err
	}
	images, err := parts.Images(ctx)
	return len(images) > 0, err
}

// Notes returns the notes about a cluster, which are volumes of the engine.
func (p DockerProvider) Notes(cluster string) provider.Notes {
	return machines.Of(p.Engine, cluster).Notes
}

// Node returns the access to a container.
func (p DockerProvider) Node(name string) access.Connection { return node{p.Engine, name} }

// ProgramPath is the path of kube-bootstrap on every host. It is on the volume of the host, because
// copies of a volume share the file.
const ProgramPath = "/var/lib/host/bin/kube-bootstrap"

// ProgramPath returns the constant of this name.
func (p DockerProvider) ProgramPath() string { return ProgramPath }

// OnThisMachine reports whether the engine has a local socket.
func (p DockerProvider) OnThisMachine() bool { return !p.Engine.Remote() }

// Dial connects from this machine.
func (p DockerProvider) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// ConsoleLog returns what the init of a host printed last.
func (p DockerProvider) ConsoleLog(ctx context.Context, node string, lines int) string {
	return p.Engine.Tail(ctx, node, lines)
}

// Close closes the client of the engine.
func (p DockerProvider) Close() error { return p.Engine.Close() }

// node is the access to a container. Files go through commands and not through the engine's own copy,
// which does not see what is mounted inside: /run is a tmpfs.
type node struct {
	engine *docker.Engine
	name   string
}

func (n node) Exec(ctx context.Context, cmd host.Command) error {
	return ExitError(n.name, n.engine.ExecIn(ctx, n.name, cmd))
}

// ExitError returns the error of a command in a container as an *access.ExitError if the command failed.
func ExitError(node string, err error) error {
	if code, ok := errors.AsType[docker.ExitCode](err); ok {
		return &access.ExitError{Node: node, Code: int(code), Err: err}
	}
	return err
}

func (n node) Put(ctx context.Context, path string, mode os.FileMode, content io.ReadSeeker) error {
	return access.PutByCommand(ctx, n, path, mode, content)
}

func (n node) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return access.GetByCommand(ctx, n, path)
}

// Close does nothing: the engine's client is that of the provider.
func (n node) Close() error { return nil }

// NoAnswer returns the problem that the engine does not answer.
func (p DockerProvider) NoAnswer(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ") // an error of ssh has several lines
	return &step.Problem{
		Name: "engine", Text: fmt.Sprintf("the Docker engine on %s does not answer: %s", p.Engine.Address, text),
		Remedy: engineRemedy(p.Engine.Address, text), Firm: true,
	}
}

// engineRemedy returns a remedy for the kind of the address and for the error.
func engineRemedy(address, text string) string {
	way, _, _ := strings.Cut(address, "://")
	switch {
	case strings.Contains(text, "permission denied") && way == "unix":
		return "run it with sudo, or add your user to the group of that socket (`usermod -aG docker USER`, then log " +
			"in again)"
	case way == "ssh":
		return "check that `ssh " + strings.TrimPrefix(address, "ssh://") + " docker version` works without a password"
	case way == "tcp" || way == "http" || way == "https":
		return "check that Docker listens there, that no firewall is in between, and DOCKER_TLS_VERIFY and " +
			"DOCKER_CERT_PATH"
	}
	return "start Docker there (with systemd, `systemctl start docker`), or name another engine with --docker-host " +
		"or --docker-context"
}
