package offline

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"
)

// Turn lets those who load from one bundle at the same time unpack one after
// the other where that takes much memory: whoever unpacks holds all that the
// compression looks back to.
type Turn struct{ room *semaphore.Weighted }

// NewTurn makes the turn that all loads of a host share.
func NewTurn() Turn { return Turn{semaphore.NewWeighted(window)} }

// As long as so much is held, what is garbage may not pile up to as much again.
const garbagePercent, usualPercent = 5, 100

func (t Turn) take(held int64) {
	if t.room == nil {
		return
	}
	_ = t.room.Acquire(context.Background(), held) // fails only with its context
	if held > encoderWindow {
		debug.FreeOSMemory()
		debug.SetGCPercent(garbagePercent)
	}
}

// give passes the turn on, and the memory before it.
func (t Turn) give(held int64) {
	if t.room == nil {
		return
	}
	if held > encoderWindow {
		debug.SetGCPercent(usualPercent)
		debug.FreeOSMemory()
	}
	t.room.Release(held)
}

// lookback is how many bytes one has to hold to unpack a frame.
func lookback(frame *io.SectionReader) (int64, error) {
	begin := make([]byte, min(zstd.HeaderMaxSize, frame.Size()))
	if _, err := frame.ReadAt(begin, 0); err != nil {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(begin); err != nil {
		return 0, fmt.Errorf("the bundle is damaged: %w", err)
	}
	if h.SingleSegment {
		h.WindowSize = h.FrameContentSize
	}
	return int64(min(h.WindowSize, window)), nil
}

// inTurn has the bundle and its base unpacked in turn with others.
func inTurn(turn Turn) Option {
	return func(b *Bundle) error {
		b.turn = turn
		if b.base != nil {
			b.base.turn = turn
		}
		return nil
	}
}
