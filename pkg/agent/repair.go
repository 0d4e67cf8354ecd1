package agent

import (
	"context"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Repairer checks the duties of this host after events, and applies the step of
// each duty whose Check finds a difference. The groups do not wait for one
// another, and hold the lock of the host together:
//
//	             ┌── group ── duty ──▶ duty ──▶ duty
//	events ──▶ ──┼── group ── duty
//	             └── group ── duty ──▶ duty
type Repairer struct {
	Files host.Files
	// Duties returns the duties in force: none while no repair is allowed.
	Duties func() (Groups, error)
	Lock   Lock
	Log    func(string)
}

// Run repairs until ctx ends.
func (r Repairer) Run(ctx context.Context, in *Inbox) error {
	go in.tick(ctx)
	s := started{
		Repairer: r, in: in, groups: map[string]*group{},
		notes: &notes{files: r.Files, log: r.Log, told: map[string]string{}},
		lock:  &together{lock: func() (context.Context, func(), error) { return r.Lock(ctx) }},
	}
	defer s.all.Wait()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-in.arrived:
			sleep(ctx, settle, nil)
			s.tell(ctx, in.take())
		}
	}
	return nil
}

// started is a running Repairer with its groups.
type started struct {
	Repairer
	in     *Inbox
	duties Groups
	groups map[string]*group
	notes  *notes
	lock   *together
	all    sync.WaitGroup
}

// tell passes events to each group, with its duties in force.
func (s *started) tell(ctx context.Context, events Event) {
	if events != Tick || s.duties == nil {
		duties, err := s.Duties()
		s.notes.tell("read the settings", err)
		s.duties = duties
	}
	for name := range s.duties {
		if s.groups[name] == nil {
			g := &group{in: s.in, duties: s.Duties, lock: s.lock.take, notes: s.notes, waits: map[string]patience{}, woken: NewSignal()}
			s.groups[name] = g
			s.all.Go(func() { g.run(ctx) })
		}
	}
	for name, g := range s.groups {
		g.give(events, s.duties[name])
	}
}
