// Package session opens a cluster for one command: it connects to the engine,
// checks that the cluster exists, keeps other runs out, and observes the nodes.
//
//	load      Options.WithDefaults    name, engine, cache directory
//	look      Session.Observe         topology.State
//	check     Scope.Needs             an engine, a cluster, or its nodes
//	lock      Scope.Lock              no other run of this kind; then look and check again
package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Event is an event of a step, either of the session itself or of a host.
type Event struct {
	Host string // "" for the session itself
	step.Event
}

// Session is the connection of one command to a cluster. It does not change
// after it was opened. The desired and the observed nodes are parameters of the
// functions that use a session.
type Session struct {
	Engine *docker.Engine
	Options
	Emit func(Event) // passes an event on to the caller of the command
}

// Needs states what must exist before a command starts.
type Needs int

// Needs of commands.
const (
	AnEngine Needs = iota // an engine that answers, and that has the cluster if there is one
	ACluster              // at least one part of the cluster
	Nodes                 // at least one node
)

// Scope states what a command needs.
type Scope struct {
	Needs Needs
	Lock  Lock        // the runs to keep out; the zero value is none
	Emit  func(Event) // nil: drop the events
}

// Open connects to the engine of a cluster. The caller closes the engine; Do does both.
func Open(options Options, emit func(Event)) (*Session, error) {
	options, err := options.WithDefaults()
	if err != nil {
		return nil, err
	}
	engine, err := options.Engine.Open()
	if err != nil {
		return nil, &step.Problem{Name: "engine", Text: err.Error(), Remedy: "correct --docker-host, --docker-context or DOCKER_HOST"}
	}
	var mu sync.Mutex // hosts work concurrently
	return &Session{engine, options, func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if emit != nil {
			emit(e)
		}
	}}, nil
}

// Do opens a cluster, calls do with its observed nodes, and closes it.
func Do(ctx context.Context, options Options, scope Scope, do func(*Session, topology.State) error) error {
	s, err := Open(options, scope.Emit)
	if err != nil {
		return err
	}
	defer s.Engine.Close()
	state, err := s.look(ctx, scope.Needs)
	if err == nil && scope.Lock != (Lock{}) {
		release, errLock := s.Hold(ctx, scope.Lock)
		if errLock != nil {
			return errLock
		}
		defer release()
		state, err = s.look(ctx, scope.Needs) // another run may have changed the cluster in between
	}
	if err != nil {
		return err
	}
	return do(s, state)
}

// Get is Do for a function that returns a value.
func Get[T any](ctx context.Context, options Options, scope Scope, get func(*Session, topology.State) (T, error)) (got T, err error) {
	err = Do(ctx, options, scope, func(s *Session, state topology.State) error {
		got, err = get(s, state)
		return err
	})
	return got, err
}

// look observes the nodes and checks the needs of a command.
func (s *Session) look(ctx context.Context, needs Needs) (topology.State, error) {
	state, err := s.Observe(ctx)
	if err == nil {
		err = s.sameEngine(ctx)
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
	all, err := machines.All(ctx, s.Engine)
	if err != nil {
		return topology.State{}, s.NoAnswer(err)
	}
	return topology.Observed(s.Name, all), nil
}

// Cluster returns the parts of the cluster on its engine.
func (s *Session) Cluster() machines.Cluster { return machines.Of(s.Engine, s.Name) }

// Node returns the access to a node by its host name.
func (s *Session) Node(name string) driver.Node { return driver.Node{Engine: s.Engine, Name: name} }

// Run applies a plan. If it fails, the next run continues.
func (s *Session) Run(ctx context.Context, plan step.Plan) error {
	runner := &step.Runner{Emit: func(e step.Event) { s.Emit(Event{Event: e}) }}
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
