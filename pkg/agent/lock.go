package agent

import (
	"context"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Lock takes the lock of this host in the background. The context that it
// returns ends when a run of a user waits for the lock.
type Lock func(context.Context) (held context.Context, release func(), err error)

// together lets several repairs hold one lock at the same time: the first
// takes it, the last releases it.
type together struct {
	lock func() (held context.Context, release func(), err error)

	mu      sync.Mutex
	users   int
	held    context.Context
	release func()
}

// take is a Lock. While a run of a user waits, nobody joins those that hold the
// lock, or they would never all have released it.
func (t *together) take(ctx context.Context) (context.Context, func(), error) {
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

func (t *together) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		t.release()
	}
}
