package agent

import (
	"context"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Repairer checks the reconcilers of this host after events, and applies the step of
// each reconciler whose Check finds a difference. The groups do not wait for one
// another, and hold the lock of the host together:
//
//	             ┌── group ── reconciler ──▶ reconciler ──▶ reconciler
//	events ──▶ ──┼── group ── reconciler
//	             └── group ── reconciler ──▶ reconciler
type Repairer struct {
	Files host.Files
	// Reconcilers returns the reconcilers in force: none while no repair is allowed.
	Reconcilers func() (Groups, error)
	TakeLock    TakeLock
	Log         func(string)
}

// Run repairs until ctx ends.
func (r Repairer) Run(ctx context.Context, in *Inbox) error {
	go in.tick(ctx)
	s := dispatcher{
		Repairer: r, in: in, groups: map[string]*group{},
		recorder: &recorder{files: r.Files, log: r.Log, logged: map[string]string{}},
		lock:     &sharedLock{lock: func() (context.Context, func(), error) { return r.TakeLock(ctx) }},
	}
	defer s.all.Wait()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-in.arrived:
			_ = step.Pause(ctx, settle)
			s.dispatch(ctx, in.take())
		}
	}
	return nil
}

type dispatcher struct {
	Repairer
	in          *Inbox
	reconcilers Groups
	groups      map[string]*group
	recorder    *recorder
	lock        *sharedLock
	all         sync.WaitGroup
}

func (s *dispatcher) dispatch(ctx context.Context, events Events) {
	if events != Tick || s.reconcilers == nil {
		reconcilers, err := s.Reconcilers()
		s.recorder.logError("read the settings", err)
		s.reconcilers = reconcilers
	}
	for name := range s.reconcilers {
		if s.groups[name] == nil {
			g := newGroup(s)
			s.groups[name] = g
			s.all.Go(func() { g.run(ctx) })
		}
	}
	for name, g := range s.groups {
		list := s.reconcilers[name]
		g.list.Store(&list)
		g.queue.Add(events)
	}
}

// TakeLock takes the lock of this host in the background. The returned context is
// cancelled when a user's run waits for the lock.
type TakeLock func(context.Context) (held context.Context, release func(), err error)

// sharedLock shares one lock among concurrent repairs: the first one takes it,
// the last one releases it.
type sharedLock struct {
	lock func() (held context.Context, release func(), err error)

	mu      sync.Mutex
	users   int
	held    context.Context
	release func()
}

// take is a Lock. While a user's run waits, it refuses further users of the
// lock, because otherwise the lock might never be released.
func (t *sharedLock) take(ctx context.Context) (context.Context, func(), error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users == 0 {
		held, release, err := t.lock()
		if err != nil {
			return nil, nil, err
		}
		t.held, t.release = held, release
	}
	if t.held.Err() != nil {
		return nil, nil, host.ErrLocked
	}
	t.users++
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.held, cancel)
	return ctx, func() { stop(); cancel(); t.leave() }, nil
}

func (t *sharedLock) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		t.release()
	}
}
