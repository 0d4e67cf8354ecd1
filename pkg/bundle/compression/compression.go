// Package compression compresses the frames of bundles, and layers, with zstd.
package compression

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Method compresses frames. It must be deterministic.
type Method struct {
	Name     string
	Compress func(ctx context.Context, to io.Writer, from io.Reader, size int64) error
}

// Fast takes seconds, for bundles that are used only on this machine.
var Fast = Method{"quick", func(_ context.Context, to io.Writer, from io.Reader, size int64) error {
	return Encode(to, from, size, zstd.SpeedDefault)
}}

// best is the best compression of the Go library.
var best = Method{"best", func(_ context.Context, to io.Writer, from io.Reader, size int64) error {
	return Encode(to, from, size, zstd.SpeedBestCompression)
}}

// Ultra takes minutes and results in three quarters of the size of best: the
// zstd program compares encodings with one another (level 19), which no Go
// library does. It is best if the program is not installed.
func Ultra(ctx context.Context) Method {
	version, err := host.Run(ctx, zstdProgram, "--version")
	number := zstdVersion.FindString(version)
	if err != nil || number == "" {
		return best
	}
	return Method{"zstd-" + number, compressByProgram}
}

const zstdProgram = "zstd"

var zstdVersion = regexp.MustCompile(`\d+\.\d+\.\d+`)

func compressByProgram(ctx context.Context, to io.Writer, from io.Reader, size int64) error {
	// Without --single-thread it reads all input before it starts.
	_, err := host.Command{Stdin: from, Stdout: to,
		Args: []string{zstdProgram, "-q", "-19", "--long=27", "--zstd=" + matchTables, "--single-thread",
			fmt.Sprintf("--stream-size=%d", size), "-c"}}.Run(ctx)
	return err
}

// matchTables enlarges the table of distant matches, which Go programs have in
// common, and reduces the tables of near ones. The result is as small as with the
// defaults, which need more than 200 MB of memory.
const matchTables = "chainLog=22,hashLog=21,ldmHashLog=22,ldmHashRateLog=4,ldmMinMatch=32"

// maxEncoderWindow is the largest window of the Go library. Its tables are too
// small to find many matches beyond, and it allocates twice the window.
const maxEncoderWindow = 8 << 20

// Encode uses a window that is no larger than size, which saves time and memory
// here and on the host that decompresses.
func Encode(to io.Writer, from io.Reader, size int64, level zstd.EncoderLevel) error {
	window := zstd.MinWindowSize
	for int64(window) < size && window < maxEncoderWindow {
		window *= 2
	}
	// One worker: the same input always results in the same bytes.
	encoder, err := zstd.NewWriter(to, zstd.WithEncoderLevel(level), zstd.WithWindowSize(window),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if _, err := io.Copy(encoder, from); err != nil {
		return err
	}
	return encoder.Close()
}

// EncodeBytes compresses data as much as the Go library can.
func EncodeBytes(to io.Writer, data []byte) error {
	return Encode(to, bytes.NewReader(data), int64(len(data)), zstd.SpeedBestCompression)
}

const maxWindow = 128 << 20

// NewDecoder returns a decoder with a number of goroutines. One reads nothing
// beyond the frame that it decodes.
func NewDecoder(r io.Reader, workers int) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(workers), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderLowmem(true))
}
