package offline

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/klauspost/compress/zstd"
)

// As long as much is held, what is garbage may not pile up to as much again.
const garbagePercent, usualPercent = 5, 100

// holding has the garbage collector keep up while so many bytes are held, and
// returns what ends that.
func holding(bytes int64) (release func()) {
	if bytes <= encoderWindow {
		return func() {}
	}
	debug.FreeOSMemory()
	debug.SetGCPercent(garbagePercent)
	return func() {
		debug.SetGCPercent(usualPercent)
		debug.FreeOSMemory()
	}
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
