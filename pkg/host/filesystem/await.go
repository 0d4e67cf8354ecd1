package filesystem

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	awaitTick = 5 * time.Second // beside the events of the kernel
	// awaitPoll replaces the events if the host has no inotify instance left.
	awaitPoll = 500 * time.Millisecond
)

// Await calls done at once and after each change in a directory, until it returns true or an error.
func Await(ctx context.Context, dir string, done func() (bool, error)) error {
	var events <-chan fsnotify.Event
	var lost <-chan error
	every := awaitPoll
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer watcher.Close()
		if watcher.Add(dir) == nil {
			events, lost, every = watcher.Events, watcher.Errors, awaitTick
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if is, err := done(); err != nil || is {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events:
		case <-lost: //nolint:errcheck // done looks again, as after an event
		case <-tick.C:
		}
	}
}
