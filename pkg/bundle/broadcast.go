package bundle

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Broadcast decompresses a bundle once for all stores that load from it at the same time: it writes each blob to every
// subscriber that needs it. Loading into several stores then takes the time and memory of one decompression.
//
// When a subscriber joins late, the broadcast goes back to the first blob that it needs, so that each subscriber
// receives its blobs in the order of the bundle: layers after those below them. The slowest subscriber delays the
// others, so each store must read its archive without waiting for another store. Docker and containerd do so: they
// receive a whole archive before they process it.
//
// The zero Broadcast is ready for use.
type Broadcast struct {
	verified sync.Map // verifiedFrame → true

	mu          sync.Mutex
	subscribers []*subscriber
	running     bool
}

// subscriber is a reader that needs some blobs.
type subscriber struct {
	writerFor func(digest.Digest) (io.Writer, error) // called before each blob
	pending   map[digest.Digest]bool
	done      chan error
}

// copyTo writes the blobs to the writers that writerFor returns, in the order of the bundle. It returns when all are
// written. The goroutine of the broadcast calls writerFor and the writers.
func (b *Broadcast) copyTo(ctx context.Context, from *Bundle, blobs []digest.Digest,
	writerFor func(digest.Digest) (io.Writer, error)) error {
	if len(blobs) == 0 {
		return nil
	}
	s := &subscriber{writerFor: writerFor, pending: map[digest.Digest]bool{}, done: make(chan error, 1)}
	for _, d := range blobs {
		s.pending[d] = true
	}
	if err := b.add(from, s); err != nil {
		return err
	}
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		b.remove(s, nil)
		return context.Cause(ctx)
	}
}

func (b *Broadcast) add(from *Bundle, s *subscriber) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running {
		own, err := from.duplicate() // the first subscriber may close its bundle before the others are served
		if err != nil {
			return err
		}
		b.running = true
		go b.run(own)
	}
	b.subscribers = append(b.subscribers, s)
	return nil
}

// remove removes a subscriber and makes its copyTo return err.
func (b *Broadcast) remove(s *subscriber, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribers = slices.DeleteFunc(b.subscribers, func(other *subscriber) bool { return other == s })
	select {
	case s.done <- err:
	default: // it was removed before
	}
}

func (b *Broadcast) received(s *subscriber, d digest.Digest) {
	delete(s.pending, d)
	if len(s.pending) == 0 {
		b.remove(s, nil)
	}
}

// run sends blobs until no subscriber is left.
func (b *Broadcast) run(from *Bundle) {
	reader := &frameReader{bundle: from}
	for {
		d, to := b.next(from)
		if len(to) == 0 && b.stop(reader) {
			return
		}
		if len(to) > 0 {
			b.send(reader, d, to)
		}
	}
}

// stop ends the broadcast. It reports false if a subscriber joined meanwhile.
func (b *Broadcast) stop(reader *frameReader) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.subscribers) > 0 {
		return false
	}
	reader.close()
	_ = reader.bundle.Close()
	b.running = false
	return true
}

// next returns the first pending blob, and the subscribers that need it.
func (b *Broadcast) next(from *Bundle) (next digest.Digest, to []*subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var pending []digest.Digest
	for _, s := range b.subscribers {
		pending = slices.AppendSeq(pending, maps.Keys(s.pending))
	}
	if len(pending) == 0 {
		return "", nil
	}
	next = slices.MinFunc(pending, from.compare)
	for _, s := range b.subscribers {
		if s.pending[next] {
			to = append(to, s)
		}
	}
	return next, to
}

// send writes a blob to subscribers, and removes those whose writer fails.
func (b *Broadcast) send(reader *frameReader, d digest.Digest, to []*subscriber) {
	var writers broadcastWriter
	for _, s := range to {
		w, err := s.writerFor(d)
		writers = append(writers, &subscriberWriter{s, w, err})
	}
	copyBlob := reader.copy
	if reader.bundle.fetch == nil && reader.bundle.Manifest.Blobs[d].Size >= image.ManifestLimit {
		copyBlob = reader.copyUnverified // CheckImages has verified its frame, and each store verifies the layer
	}
	readErr := copyBlob(writers, d)
	for _, w := range writers {
		switch {
		case w.err != nil:
			b.remove(w.subscriber, w.err)
		case readErr != nil:
			b.remove(w.subscriber, readErr)
		default:
			b.received(w.subscriber, d)
		}
	}
}

// subscriberWriter writes one blob to one subscriber.
type subscriberWriter struct {
	*subscriber
	w   io.Writer
	err error // of the first failed write; there are no further writes
}

// broadcastWriter continues when some writers fail, unlike io.MultiWriter.
type broadcastWriter []*subscriberWriter

// Write fails if all subscribers have failed.
func (all broadcastWriter) Write(p []byte) (int, error) {
	err := io.ErrClosedPipe
	for _, s := range all {
		if s.err == nil {
			_, s.err = s.w.Write(p)
		}
		if s.err == nil {
			err = nil
		}
	}
	return len(p), err
}
