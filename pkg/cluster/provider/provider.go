// Package provider separates the commands about clusters from the kind of their nodes. A provider
// lists the nodes of clusters, reaches them, and keeps notes about clusters.
//
//	commands -> session -> Provider -> containers on a Docker engine (pkg/cluster/containers)
//	                                -> directories of this machine, in tests (providertest)
//
// It creates, starts and removes no nodes: not every kind of node can be created by a program.
package provider

import (
	"context"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

// Opener selects a provider.
type Opener interface {
	// Open returns the provider, which need not connect yet.
	Open() (Provider, error)
}

// Provider is the place of the nodes of clusters.
type Provider interface {
	// Clusters returns all clusters in the order of their names.
	Clusters(ctx context.Context) ([]ClusterInfo, error)
	// Nodes observes the nodes of a cluster.
	Nodes(ctx context.Context, cluster string) (topology.State, error)
	// Node returns the access to a node by its host name. It does not connect yet.
	Node(name string) access.Connection
	// Exists reports whether the provider has any part of a cluster, also remains of a killed run.
	Exists(ctx context.Context, cluster string) (bool, error)
	// Notes returns the notes about a cluster, which need not exist.
	Notes(cluster string) Notes
	// URL returns the URL at which this machine reaches the API servers of a cluster.
	URL(ctx context.Context, cluster string) (string, error)

	// ProgramPath returns the path of kube-bootstrap on every node.
	ProgramPath() string
	// OnThisMachine reports whether the nodes run on this machine. The root user of such a node may
	// be root of this machine, and this machine has a route to the node.
	OnThisMachine() bool
	// ConsoleLog returns the last lines that a node printed on its console; "" if they are unknown.
	ConsoleLog(ctx context.Context, node string, lines int) string
	// Owns returns the problem that the files of a cluster in dir, a directory of this machine,
	// belong to a cluster of the same name at another place.
	Owns(ctx context.Context, cluster, dir string) error
	// NoAnswer returns the problem that the provider did not answer.
	NoAnswer(err error) error
	Close() error
}

// Notes are texts about one cluster. Every client of the provider can read them. A reader sees
// either the old text or the new one.
type Notes interface {
	// All returns the notes by their keys.
	All(ctx context.Context) (map[string]string, error)
	// Set keeps a text under a key, and replaces an earlier one.
	Set(ctx context.Context, key, text string) error
	// Forget removes a note. A missing note is no error.
	Forget(ctx context.Context, key string) error
}

// ClusterInfo is a cluster in the list of a provider.
type ClusterInfo struct {
	Name    string
	Nodes   topology.State
	Subnet  netip.Prefix // of its nodes; the zero value if they have no network of their own
	Remains bool         // left by a removal that was killed
}
