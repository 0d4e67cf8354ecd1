package bundle

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

// broadcastOf returns a bundle that is read through the broadcast, and its blobs
// in the order of the file.
func broadcastOf(t *testing.T, broadcast *Broadcast) (*Bundle, []digest.Digest) {
	t.Helper()
	b := opened(t, writeFor(t, "amd64"), WithBroadcast(broadcast))
	return b, b.inFileOrder(b.Manifest.blobsOf(b.Manifest.Images, "amd64"))
}

// receive subscribes to blobs and compares each with its digest.
func receive(ctx context.Context, broadcast *Broadcast, b *Bundle, blobs []digest.Digest) error {
	received := map[digest.Digest]*bytes.Buffer{}
	err := broadcast.copyTo(ctx, b, blobs, func(d digest.Digest) (io.Writer, error) {
		received[d] = &bytes.Buffer{}
		return received[d], nil
	})
	for _, d := range blobs {
		if err == nil && (received[d] == nil || digest.FromBytes(received[d].Bytes()) != d) {
			err = errors.New(d.String() + " has other content")
		}
	}
	return err
}

func TestBroadcastSendsToAllWhatEachNeeds(t *testing.T) {
	broadcast := &Broadcast{}
	b, blobs := broadcastOf(t, broadcast)
	var group errgroup.Group
	for i := range len(blobs) {
		group.Go(func() error { return receive(t.Context(), broadcast, b, blobs[i:]) })
		group.Go(func() error { return receive(t.Context(), broadcast, b, blobs[:i+1]) })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// TestBroadcastContinues: a subscriber that fails does not affect the others,
// and may close its bundle.
func TestBroadcastContinues(t *testing.T) {
	broadcast := &Broadcast{}
	b, blobs := broadcastOf(t, broadcast)
	large := slices.MaxFunc(blobs,
		func(x, y digest.Digest) int { return int(b.Manifest.Blobs[x].Size - b.Manifest.Blobs[y].Size) })
	full := errors.New("no space left")
	started, others := make(chan bool), make(chan error, 1)
	go func() {
		<-started
		others <- receive(t.Context(), broadcast, b, blobs)
	}()
	err := broadcast.copyTo(t.Context(), b, []digest.Digest{large}, func(digest.Digest) (io.Writer, error) {
		close(started)
		return nil, full
	})
	if !errors.Is(err, full) {
		t.Errorf("a subscriber that fails: %v", err)
	}
	if err := <-others; err != nil {
		t.Errorf("the other subscriber: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := receive(ctx, broadcast, b, blobs); !errors.Is(err, context.Canceled) {
		t.Errorf("a subscriber that is stopped: %v", err)
	}
	if err := receive(t.Context(), broadcast, b, blobs); err != nil {
		t.Errorf("after it: %v", err)
	}
}
