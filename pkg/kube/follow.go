package kube

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

const (
	firstReopen = time.Second // after a watch that broke
	maxReopen   = 5 * time.Second
)

// Follow calls tell with each event of a watch, and with an empty event after
// each start of the watch, because changes may have been missed before it. It
// reopens the watch until ctx ends.
func Follow(ctx context.Context, open Watch, tell func(watch.Event)) {
	for pause := firstReopen; ctx.Err() == nil; pause = min(2*pause, maxReopen) {
		if events, err := open(ctx); err == nil {
			tell(watch.Event{})
			for event := range events.ResultChan() {
				tell(event)
			}
			events.Stop()
			pause = firstReopen // the server ends each watch after some minutes
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
