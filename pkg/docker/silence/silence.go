// Package silence ends a request to an engine that does not answer.
package silence

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Watchdog ends a request whose engine is silent for longer than the limit of
// the step: it neither reads the request nor answers. A limit for the whole request would be
// wrong, because an image may take any time on a slow disk or link.
type Watchdog struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// Begin returns a context that ends when the engine is silent.
func Begin(ctx context.Context) (context.Context, *Watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watchdog{limit: step.Limit(ctx), cancel: cancel}
	w.timer = time.AfterFunc(w.limit, func() {
		cancel(fmt.Errorf("the engine has accepted the request and is silent for %s", w.limit))
	})
	return ctx, w
}

// End ends the watch.
func (w *Watchdog) End() {
	w.timer.Stop()
	w.cancel(nil)
}

// Explain returns the reason why the request ended.
func (*Watchdog) Explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Sent returns a reader of the request body. The timer does not run while source is read.
func (w *Watchdog) Sent(source io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		w.timer.Stop()
		defer w.timer.Reset(w.limit)
		return source.Read(p)
	})
}

// Heard returns a reader of the response body. The timer runs only during a Read.
func (w *Watchdog) Heard(answer io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		w.timer.Reset(w.limit)
		defer w.timer.Stop()
		return answer.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
