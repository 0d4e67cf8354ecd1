package agent

import (
	"context"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Lock takes the lock of this host in the background. The returned context is
// cancelled when a user's run waits for the lock.
type Lock func(context.Context) (held context.Context, release func(), err error)

// together shares one lock among concurrent repairs: the first one takes it,
// the last one releases it.
type together struct {
	lock func() (held context.Context, release func(), err error)

	mu      sync.Mutex
	users   int
	held    context.Context
	release func()
}

// take is a Lock. While a user's run waits, it refuses further users of the
// lock, because otherwise the lock might never be released.
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
