// Package session opens a cluster for one command: it opens the provider,
// checks that the cluster exists, keeps other runs out, and observes the nodes.
//
//	load      Options.WithDefaults    name, provider, cache directory
//	observe   Session.Observe         topology.State
//	check     Scope.Needs             a provider, a cluster, or its nodes
//	lock      Scope.Lock              no other run of this kind; then observe and check again
package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// HostEvent is an event of a step, either of the session itself or of a host.
type HostEvent struct {
	Host string // "" for the session itself
	step.Event
}

// Session is the connection of one command to a cluster. The desired and the observed nodes are
// parameters of the functions that use a session.
type Session struct {
	Selection
	Provider provider.Provider
	Emit     func(HostEvent) // passes an event on to the caller of the command

	nodes   *connections
	release func() // the lock of the command
}

// Needs states what must exist before a command starts.
type Needs int

// Needs of commands.
const (
	AProvider Needs = iota // the provider answers; the cluster need not exist
	ACluster               // at least one part of the cluster
	Nodes                  // at least one node
)

// Requirements states what a command needs.
type Requirements struct {
	Needs Needs
	Lock  Lock            // the runs to keep out; the zero value is none
	Emit  func(HostEvent) // nil: drop the events
}

// Open opens the provider of a cluster. The caller closes the session.
func Open(options Selection, emit func(HostEvent)) (*Session, error) {
	options, err := options.WithDefaults()
	if err != nil {
		return nil, err
	}
	p, err := options.Provider.Open()
	if err != nil {
		return nil, err
	}
	return New(options, p, emit), nil
}

// New returns a session with a provider that is open.
func New(options Selection, p provider.Provider, emit func(HostEvent)) *Session {
	return &Session{
		Selection: options, Provider: p, Emit: oneAtATime(emit),
		nodes: &connections{open: map[string]access.Connection{}},
	}
}

// oneAtATime returns emit for hosts that work concurrently. Without emit, it drops the events.
func oneAtATime(emit func(HostEvent)) func(HostEvent) {
	var mu sync.Mutex
	return func(e HostEvent) {
		mu.Lock()
		defer mu.Unlock()
		if emit != nil {
			emit(e)
		}
	}
}

// Begin opens a cluster for a command, and returns its observed nodes. The caller closes the session.
func Begin(ctx context.Context, options Selection, scope Requirements) (*Session, topology.State, error) {
	s, err := Open(options, scope.Emit)
	if err != nil {
		return nil, topology.State{}, err
	}
	state, err := s.begin(ctx, scope)
	if err != nil {
		_ = s.Close()
		return nil, topology.State{}, err
	}
	return s, state, nil
}

func (s *Session) begin(ctx context.Context, scope Requirements) (topology.State, error) {
	state, err := s.inspect(ctx, scope.Needs)
	if err != nil || scope.Lock == (Lock{}) {
		return state, err
	}
	if s.release, err = s.Hold(ctx, scope.Lock); err != nil {
		return state, err
	}
	return s.inspect(ctx, scope.Needs) // another run may have changed the cluster in between
}

// Close releases the lock, and closes the provider and the connections to nodes.
func (s *Session) Close() error {
	if s.release != nil {
		s.release()
	}
	return errors.Join(s.nodes.close(), s.Provider.Close())
}

// Do opens a cluster, calls do with its observed nodes, and closes it.
func Do(ctx context.Context, options Selection, scope Requirements, do func(*Session, topology.State) error) error {
	s, state, err := Begin(ctx, options, scope)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s, state)
}

// OnRunning is Do for one node, which must answer commands.
func OnRunning(ctx context.Context, options Selection, scope Requirements, name string,
	do func(*Session, topology.ClusterNode) error) error {
	return Do(ctx, options, scope, func(s *Session, state topology.State) error {
		n, err := state.Topology(s.Name).PickRunning(name, state)
		if err != nil {
			return err
		}
		return do(s, n)
	})
}

// Get is Do for a function that returns a value.
func Get[T any](
	ctx context.Context, options Selection, scope Requirements, get func(*Session, topology.State) (T, error),
) (got T, err error) {
	err = Do(ctx, options, scope, func(s *Session, state topology.State) error {
		got, err = get(s, state)
		return err
	})
	return got, err
}

// inspect observes the nodes and checks the needs of a command.
func (s *Session) inspect(ctx context.Context, needs Needs) (topology.State, error) {
	state, err := s.Observe(ctx)
	if err == nil {
		err = s.Provider.Owns(ctx, s.Name, s.PrivateDir())
	}
	switch {
	case err != nil:
	case needs == ACluster:
		err = s.MustExist(ctx)
	case needs == Nodes && state.Empty():
		err = s.NoNodes(ctx)
	}
	return state, err
}

// Observe returns the nodes that exist.
func (s *Session) Observe(ctx context.Context) (topology.State, error) {
	state, err := s.Provider.Nodes(ctx, s.Name)
	if err != nil {
		return topology.State{}, s.Provider.NoAnswer(err)
	}
	return state, nil
}

// Notes returns the notes about the cluster.
func (s *Session) Notes() provider.Notes { return s.Provider.Notes(s.Name) }

// Node returns the access to a node by its host name. Close ends the connection.
func (s *Session) Node(name string) access.Connection { return s.nodes.node(s.Provider, name) }

// Run applies a plan. If it fails, the next run continues.
func (s *Session) Run(ctx context.Context, plan step.Plan) error {
	runner := &step.Runner{Emit: func(e step.Event) { s.Emit(HostEvent{Event: e}) }}
	return runner.Do(ctx, plan)
}

// Lock names the runs that exclude one another on the same cluster.
type Lock struct{ kind string }

// The locks of a cluster. A run has one of them at most, so that no two runs wait for each
// other. ClusterLock is also the lock of the snapshots: a save and a restore need hosts that no
// other run changes, and each removal of what a killed run left also stops the copies of a
// running one.
var (
	ClusterLock = Lock{kind: "cluster"}
	SuiteLock   = Lock{kind: "e2e"}
)

// Hold acquires a lock of the cluster, or fails if another run has it. The caller releases it.
func (s *Session) Hold(ctx context.Context, l Lock) (release func(), err error) {
	if err = os.MkdirAll(s.CacheDir, 0o755); err == nil {
		release, err = host.Lock(ctx, filepath.Join(s.CacheDir, "."+l.kind+"-"+s.Name+".lock"))
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", s.Name, err)
	}
	return release, nil
}
