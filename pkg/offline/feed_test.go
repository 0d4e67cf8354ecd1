package offline

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

// layersFor are those of a bundle that is loaded from, with the bundle.
func layersFor(t *testing.T, feed *Feed) (*Bundle, []digest.Digest) {
	t.Helper()
	b, err := Open(writeFor(t, "amd64"), sharing(feed))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	blobs, _, _ := b.plan(b.Images, "amd64")
	return b, b.sorted(blobs)
}

// whole takes blobs and compares each with its digest.
func whole(ctx context.Context, feed *Feed, b *Bundle, blobs []digest.Digest) error {
	texts := map[digest.Digest]*bytes.Buffer{}
	err := feed.take(ctx, b, blobs, func(d digest.Digest) (io.Writer, error) {
		texts[d] = &bytes.Buffer{}
		return texts[d], nil
	})
	for _, d := range blobs {
		if err == nil && (texts[d] == nil || digest.FromBytes(texts[d].Bytes()) != d) {
			err = errors.New(d.String() + " is not what was given")
		}
	}
	return err
}

func TestFeedGivesToAllWhatEachWants(t *testing.T) {
	feed := &Feed{}
	b, blobs := layersFor(t, feed)
	var group errgroup.Group
	for i := range len(blobs) {
		group.Go(func() error { return whole(t.Context(), feed, b, blobs[i:]) })
		group.Go(func() error { return whole(t.Context(), feed, b, blobs[:i+1]) })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// TestFeedCarriesOn: what becomes of one taker is nothing to the others, and its
// bundle may be closed when it is through.
func TestFeedCarriesOn(t *testing.T) {
	feed := &Feed{}
	b, blobs := layersFor(t, feed)
	large := slices.MaxFunc(blobs, func(x, y digest.Digest) int { return int(b.Blobs[x].Size - b.Blobs[y].Size) })
	full := errors.New("no space left")
	begun, others := make(chan bool), make(chan error, 1)
	go func() {
		<-begun
		others <- whole(t.Context(), feed, b, blobs)
	}()
	err := feed.take(t.Context(), b, []digest.Digest{large}, func(digest.Digest) (io.Writer, error) {
		close(begun)
		return nil, full
	})
	if !errors.Is(err, full) {
		t.Errorf("one that can take no more: %v", err)
	}
	if err := <-others; err != nil {
		t.Errorf("the other one: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := whole(ctx, feed, b, blobs); !errors.Is(err, context.Canceled) {
		t.Errorf("one that is stopped: %v", err)
	}
	if err := whole(t.Context(), feed, b, blobs); err != nil {
		t.Errorf("after it: %v", err)
	}
}
