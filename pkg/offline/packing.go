package offline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// packing is a way to compress. The same way gives the same bytes for the same
// input, always.
type packing struct {
	name string
	pack func(ctx context.Context, to io.Writer, from io.Reader, size int64) error
}

// quick takes seconds, for what is not carried anywhere.
var quick = packing{"quick", func(_ context.Context, to io.Writer, from io.Reader, size int64) error {
	return encode(to, from, size, zstd.SpeedDefault)
}}

// best is what this program can do by itself.
var best = packing{"best", func(_ context.Context, to io.Writer, from io.Reader, size int64) error {
	return encode(to, from, size, zstd.SpeedBestCompression)
}}

// dense takes minutes, and saves a quarter to what best makes: the zstd program
// looks for the cheapest way to write all that it has found, which no library
// in Go does. Without the program it is best.
func dense(ctx context.Context) packing {
	version, err := host.Run(ctx, zstdProgram, "--version")
	number := zstdVersion.FindString(version)
	if err != nil || number == "" {
		return best
	}
	return packing{"zstd-" + number, packByProgram}
}

const zstdProgram = "zstd"

var zstdVersion = regexp.MustCompile(`\d+\.\d+\.\d+`)

func packByProgram(ctx context.Context, to io.Writer, from io.Reader, size int64) error {
	// With threads, even one, it would read everything before it begins.
	_, err := host.Command{Stdin: from, Stdout: to, Args: []string{zstdProgram, "-q", "-19", "--long=27", "--zstd=" + tables, "--single-thread",
		fmt.Sprintf("--stream-size=%d", size), "-c"}}.Run(ctx)
	return err
}

// tables has the program know more places far back, where other programs in Go
// have the same, and fewer nearby: that saves as much, and with the usual ones
// it would take more than 200 MB of memory.
const tables = "chainLog=22,hashLog=21,ldmHashLog=22,ldmHashRateLog=4,ldmMinMatch=32"

// encoderWindow is how far the library looks back. It has too small tables to
// find much beyond, and would keep twice of it in memory.
const encoderWindow = 8 << 20

// encode looks back no further than size, which saves time and memory here and
// on the host that reads it.
func encode(to io.Writer, from io.Reader, size int64, level zstd.EncoderLevel) error {
	back := zstd.MinWindowSize
	for int64(back) < size && back < encoderWindow {
		back *= 2
	}
	// One worker: the same input always gives the same bytes.
	encoder, err := zstd.NewWriter(to, zstd.WithEncoderLevel(level), zstd.WithWindowSize(back), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if _, err := io.Copy(encoder, from); err != nil {
		return err
	}
	return encoder.Close()
}

func encodeTo(w io.Writer, data []byte) error {
	return encode(w, bytes.NewReader(data), int64(len(data)), zstd.SpeedBestCompression)
}
