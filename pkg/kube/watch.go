package kube

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Watch opens a watch without a resource version, so that the API server
// first sends an event for each existing object.
type Watch func(context.Context) (watch.Interface, error)

// Await follows a watch until holds returns nil for one of its objects. It
// reopens a broken watch. When the limit of ctx is over, it returns the last
// error and the text of explain, which may be nil.
func Await(ctx context.Context, open Watch, holds func(runtime.Object) error, explain func() string) error {
	return step.Until(ctx, func(ctx context.Context) error { return await(ctx, open, holds) }, explain)
}

func await(ctx context.Context, open Watch, holds func(runtime.Object) error) error {
	events, err := open(ctx)
	if err != nil {
		return err
	}
	defer events.Stop()
	last := errors.New("no object exists yet")
	for {
		select {
		case <-ctx.Done():
			return last
		case event, more := <-events.ResultChan():
			if !more {
				return last
			}
			if last = answer(event, holds); last == nil {
				return nil
			}
			step.Report(ctx, last.Error(), 0, 0)
		}
	}
}

func answer(event watch.Event, holds func(runtime.Object) error) error {
	switch event.Type {
	case watch.Error:
		return apierrors.FromObject(event.Object)
	case watch.Deleted:
		return errors.New("the object was deleted")
	default:
		return holds(event.Object)
	}
}

const (
	firstReopen = time.Second // after a watch that broke
	maxReopen   = 5 * time.Second
)

// Follow calls report with each event of a watch, and with an empty event after
// each start of the watch, because changes may have been missed before it. It
// reopens the watch until ctx ends.
func Follow(ctx context.Context, open Watch, report func(watch.Event)) {
	for pause := firstReopen; ctx.Err() == nil; pause = min(2*pause, maxReopen) {
		if events, err := open(ctx); err == nil {
			report(watch.Event{})
			for event := range events.ResultChan() {
				report(event)
			}
			events.Stop()
			pause = firstReopen // the server ends each watch after some minutes
		}
		_ = step.Pause(ctx, pause) // the loop looks whether ctx has ended
	}
}
