package docker

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// attention ends a request whose engine is silent for longer than the limit of
// the step: it neither reads the request nor answers. A limit for the whole request would be
// wrong, because an image may take any time on a slow disk or link.
type attention struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// attend returns a context that ends when the engine is silent.
func attend(ctx context.Context) (context.Context, *attention) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attention{limit: step.Limit(ctx), cancel: cancel}
	a.timer = time.AfterFunc(a.limit, func() {
		cancel(fmt.Errorf("the engine has accepted the request and is silent for %s", a.limit))
	})
	return ctx, a
}

func (a *attention) end() {
	a.timer.Stop()
	a.cancel(nil)
}

// explain returns the reason why the request ended.
func (*attention) explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// sent returns a reader of the request body. The timer does not run while source is read.
func (a *attention) sent(source io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		a.timer.Stop()
		defer a.timer.Reset(a.limit)
		return source.Read(p)
	})
}

// heard returns a reader of the response body. The timer runs only during a Read.
func (a *attention) heard(answer io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		a.timer.Reset(a.limit)
		defer a.timer.Stop()
		return answer.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// send sends an archive with images and returns the failure in the engine's answer.
func send(ctx context.Context, archive io.Reader, verb, what string, request func(context.Context, io.Reader) (io.ReadCloser, error)) error {
	ctx, attention := attend(ctx)
	defer attention.end()
	answer, err := request(ctx, attention.sent(archive))
	if err == nil {
		defer answer.Close()
		err = failureIn(attention.heard(answer))
	}
	return step.Wrap(attention.explain(ctx, err), "%s %s", verb, what)
}
