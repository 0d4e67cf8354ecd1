package offline

import (
	"context"
	"io"
	"slices"
	"sync"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Feed unpacks a bundle once for all who take from it at the same time: every
// blob goes to everybody who wants it. So it takes neither the time nor the
// memory of several. Who comes while it is under way gets what is still ahead,
// and the rest in another round. Each taker has to read on whatever the others
// do, as a store does that takes in an archive before it looks at it.
//
// The zero Feed is ready for use.
type Feed struct {
	mu     sync.Mutex
	takers []*taker
	runs   bool
}

// taker is somebody who wants some blobs.
type taker struct {
	begin func(digest.Digest) (io.Writer, error) // is called before each of them
	want  map[digest.Digest]bool                 // those that are still to come
	done  chan error
}

// take returns once all blobs were written to where begin says.
func (f *Feed) take(ctx context.Context, b *Bundle, blobs []digest.Digest, begin func(digest.Digest) (io.Writer, error)) error {
	if len(blobs) == 0 {
		return nil
	}
	t := &taker{begin: begin, want: map[digest.Digest]bool{}, done: make(chan error, 1)}
	for _, d := range blobs {
		t.want[d] = true
	}
	if err := f.join(b, t); err != nil {
		return err
	}
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
		f.leave(t, nil)
		return context.Cause(ctx)
	}
}

func (f *Feed) join(b *Bundle, t *taker) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.runs {
		own, err := b.again() // its owner may be through before the others are
		if err != nil {
			return err
		}
		f.runs = true
		go f.run(own)
	}
	f.takers = append(f.takers, t)
	return nil
}

// leave takes somebody off the list, who gets to know why.
func (f *Feed) leave(t *taker, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takers = slices.DeleteFunc(f.takers, func(other *taker) bool { return other == t })
	select {
	case t.done <- why:
	default: // it has left before
	}
}

// got leaves when that was the last blob.
func (f *Feed) got(t *taker, d digest.Digest) {
	delete(t.want, d)
	if len(t.want) == 0 {
		f.leave(t, nil)
	}
}

func (f *Feed) run(b *Bundle) {
	from := b.cursor()
	var last digest.Digest
	for {
		d, to := f.next(b, last)
		if len(to) == 0 && f.end(from) {
			return
		}
		if len(to) > 0 {
			f.hand(from, d, to)
			last = d
		}
	}
}

// end reports whether nobody has come meanwhile.
func (f *Feed) end(from *cursor) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.takers) > 0 {
		return false
	}
	from.close()
	_ = from.Close()
	f.runs = false
	return true
}

// next returns the blob that lies ahead of all others which somebody wants, or
// the first of them when none is ahead.
func (f *Feed) next(b *Bundle, last digest.Digest) (next digest.Digest, to []*taker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted := []digest.Digest{}
	for _, t := range f.takers {
		for d := range t.want {
			wanted = append(wanted, d)
		}
	}
	if len(wanted) == 0 {
		return "", nil
	}
	wanted = b.sorted(wanted)
	next = wanted[0]
	if ahead := slices.IndexFunc(wanted, func(d digest.Digest) bool { return b.compare(d, last) > 0 }); last != "" && ahead >= 0 {
		next = wanted[ahead]
	}
	for _, t := range f.takers {
		if t.want[next] {
			to = append(to, t)
		}
	}
	return next, to
}

// hand writes a blob to all who want it. Those who cannot take it any more
// leave; the others go on.
func (f *Feed) hand(from *cursor, d digest.Digest, to []*taker) {
	var all shares
	for _, t := range to {
		w, err := t.begin(d)
		all = append(all, &share{t, w, err})
	}
	copyBlob := from.copy
	if from.fetch == nil && from.Blobs[d].Size >= image.ManifestLimit {
		copyBlob = from.copyUnchecked // here: check has seen its frame, and every store compares a layer with its digest
	}
	failed := copyBlob(all, d)
	for _, s := range all {
		switch {
		case s.err != nil:
			f.leave(s.taker, s.err)
		case failed != nil:
			f.leave(s.taker, failed)
		default:
			f.got(s.taker, d)
		}
	}
}

// share is what one taker gets of a blob.
type share struct {
	*taker
	w   io.Writer
	err error // it can take no more
}

type shares []*share

// Write fails when there is nobody left to write to.
func (all shares) Write(p []byte) (int, error) {
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
