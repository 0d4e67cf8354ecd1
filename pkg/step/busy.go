package step

import (
	"context"
	"fmt"
	"sync"
	"time"
)

type busyKey struct{}

// WithBusy returns a context whose limits do not count the time during which the host was
// busy: a slow host needs longer while its programs progress. busy returns how long the host
// has been busy since any fixed time.
func WithBusy(ctx context.Context, busy func() time.Duration) context.Context {
	return context.WithValue(ctx, busyKey{}, busy)
}

// longer is how many times its limit a wait may last on a host that is always busy.
const longer = 10

// Longest returns how long a wait with this limit may last.
func Longest(limit time.Duration) time.Duration { return longer * limit }

// WithoutBusy returns a context whose limits count all time. It is for waits for another
// machine: that this host is busy says nothing about it.
func WithoutBusy(ctx context.Context) context.Context { return context.WithValue(ctx, busyKey{}, nil) }

type limitedKey struct{}

// limited is a context that ends with context.DeadlineExceeded once the host had its limit as
// time to work. Its deadline is not known before, so Deadline is the parent's.
type limited struct {
	context.Context // the parent
	limit           time.Duration
	busy            func() time.Duration
	begun           time.Time
	busyBefore      time.Duration

	done   chan struct{}
	mu     sync.Mutex
	err    error
	timer  *time.Timer
	forget func() bool // of the parent's end
}

// within returns a context that ends after limit, without the time during which the host was busy.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	busy, ok := ctx.Value(busyKey{}).(func() time.Duration)
	if !ok {
		return context.WithTimeout(ctx, limit)
	}
	l := &limited{
		Context: ctx, limit: limit, busy: busy, begun: time.Now(), busyBefore: busy(), done: make(chan struct{}),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget = context.AfterFunc(ctx, func() { l.end(ctx.Err()) })
	l.timer = time.AfterFunc(limit, l.check)
	return l, func() { l.end(context.Canceled) }
}

func (l *limited) Done() <-chan struct{} { return l.done }

func (l *limited) Err() error {
	if err := l.Context.Err(); err != nil {
		l.end(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *limited) Value(key any) any {
	if key == (limitedKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// check ends the context, or checks again after the time that is left.
func (l *limited) check() {
	rest := l.rest()
	if rest <= 0 {
		l.end(context.DeadlineExceeded)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.timer.Reset(max(rest, firstPause))
	}
}

func (l *limited) rest() time.Duration { return l.limit - (time.Since(l.begun) - l.wasBusy()) }

func (l *limited) wasBusy() time.Duration {
	elapsed := time.Since(l.begun)
	return min(max(l.busy()-l.busyBefore, 0), elapsed-elapsed/longer)
}

func (l *limited) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	close(l.done)
	l.timer.Stop()
	l.forget()
}

// Span returns the limit of ctx for an error that states that it is over.
func Span(ctx context.Context) string {
	text := Limit(ctx).String()
	if l, ok := ctx.Value(limitedKey{}).(*limited); ok && l.wasBusy() >= time.Second {
		text += fmt.Sprintf(", and %s more because this host was busy", l.wasBusy().Round(time.Second))
	}
	return text
}
