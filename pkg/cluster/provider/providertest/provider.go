// Package providertest is a provider for tests. Its nodes are directories of this machine, which
// commands get as their root directory, and its notes are files. It needs root, and changes nothing
// outside its directory.
package providertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Directories is a provider whose nodes are directories, and its own Opener.
//
//	CLUSTER/nodes/NAME/node.json     topology.NodeState
//	CLUSTER/nodes/NAME/root          the files of the node
//	CLUSTER/nodes/NAME/console.log
//	CLUSTER/notes/KEY
type Directories struct {
	dir         string
	connections *atomic.Int32
}

// New returns a provider without clusters.
func New(t *testing.T) Directories {
	t.Helper()
	return Directories{t.TempDir(), new(atomic.Int32)}
}

// Add adds a node that runs, and returns its root directory.
func (d Directories) Add(t *testing.T, cluster string, n topology.ClusterNode) (root string) {
	t.Helper()
	d.Set(t, cluster, topology.NodeState{ClusterNode: n, State: topology.StateRunning})
	root = filepath.Join(d.nodeDir(cluster, n.Name), "root")
	must.NoError(t, os.MkdirAll(root, 0o755))
	return root
}

// Set changes a node, such as its state.
func (d Directories) Set(t *testing.T, cluster string, n topology.NodeState) {
	t.Helper()
	data, err := json.Marshal(n)
	must.NoError(t, err)
	must.Write(t, filepath.Join(d.nodeDir(cluster, n.Name), "node.json"), string(data))
}

// Connections returns the number of nodes that were opened and not closed.
func (d Directories) Connections() int { return int(d.connections.Load()) }

func (d Directories) nodeDir(cluster, name string) string {
	return filepath.Join(d.dir, cluster, "nodes", name)
}

// Open returns the provider itself.
func (d Directories) Open() (provider.Provider, error) { return d, nil }

// Clusters returns all clusters in the order of their names.
func (d Directories) Clusters(ctx context.Context) (all []provider.ClusterInfo, err error) {
	names, err := names(d.dir)
	for _, name := range names {
		nodes, readErr := d.Nodes(ctx, name)
		err = errors.Join(err, readErr)
		all = append(all, provider.ClusterInfo{Name: name, Nodes: nodes, Remains: nodes.Empty()})
	}
	return all, err
}

// Nodes reads the nodes of a cluster.
func (d Directories) Nodes(_ context.Context, cluster string) (topology.State, error) {
	all, err := names(filepath.Join(d.dir, cluster, "nodes"))
	var nodes []topology.NodeState
	for _, name := range all {
		n, readErr := readNode(d.nodeDir(cluster, name))
		nodes, err = append(nodes, n), errors.Join(err, readErr)
	}
	return topology.Observed(nodes), err
}

func readNode(dir string) (n topology.NodeState, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "node.json"))
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(data, &n)
}

// names lists a directory, which may be missing.
func names(dir string) (all []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// Node returns the access to a node of any cluster.
func (d Directories) Node(name string) access.Connection {
	d.connections.Add(1)
	found, _ := filepath.Glob(d.nodeDir("*", name))
	return node{strings.Join(found, ""), name, d.connections}
}

// Exists reports whether there are files of a cluster.
func (d Directories) Exists(_ context.Context, cluster string) (bool, error) {
	all, err := names(d.dir)
	return slices.Contains(all, cluster), err
}

// URL returns the address of the first control plane that runs.
func (d Directories) URL(ctx context.Context, cluster string) (string, error) {
	state, err := d.Nodes(ctx, cluster)
	n, ok := state.RunningControlPlane("")
	if err == nil && !ok {
		err = fmt.Errorf("no control plane of cluster %s runs", cluster)
	}
	return "https://" + n.Addr.String() + ":6443", err
}

// ProgramPath returns a path that no container has.
func (d Directories) ProgramPath() string { return "/opt/kube-bootstrap" }

// OnThisMachine reports that root of a node is root of this machine.
func (d Directories) OnThisMachine() bool { return true }

// Dial connects from this machine.
func (d Directories) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// ConsoleLog returns the last lines of the file console.log.
func (d Directories) ConsoleLog(_ context.Context, node string, lines int) string {
	found, _ := filepath.Glob(filepath.Join(d.nodeDir("*", node), "console.log"))
	data, _ := os.ReadFile(strings.Join(found, ""))
	all := strings.SplitAfter(string(data), "\n")
	return strings.Join(all[max(0, len(all)-1-lines):], "")
}

// Owns compares the file place in dir, which names the directory of a provider.
func (d Directories) Owns(_ context.Context, cluster, dir string) error {
	place, err := os.ReadFile(filepath.Join(dir, "place"))
	if err != nil || string(place) == d.dir {
		return nil
	}
	return &step.Problem{
		Name: "cluster-place", Text: fmt.Sprintf("cluster %s is in %s", cluster, place), Remedy: "use that directory",
	}
}

// NoAnswer returns the problem that the directory cannot be read.
func (d Directories) NoAnswer(err error) error {
	return fmt.Errorf("%s cannot be read: %w", d.dir, err)
}

// Close does nothing, as no connection is open.
func (d Directories) Close() error { return nil }

// Notes returns the notes about a cluster.
func (d Directories) Notes(cluster string) provider.Notes {
	return notes(filepath.Join(d.dir, cluster, "notes"))
}

// notes is the directory of the notes about a cluster.
type notes string

func (n notes) All(context.Context) (map[string]string, error) {
	keys, err := names(string(n))
	all := map[string]string{}
	for _, key := range keys {
		text, readErr := os.ReadFile(filepath.Join(string(n), key))
		all[key], err = string(text), cmp.Or(err, readErr)
	}
	return all, err
}

func (n notes) Set(_ context.Context, key, text string) error {
	if err := os.MkdirAll(string(n), 0o755); err != nil {
		return err
	}
	return host.WriteFile(filepath.Join(string(n), key), []byte(text), 0o644)
}

func (n notes) Forget(_ context.Context, key string) error {
	err := os.Remove(filepath.Join(string(n), key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
