// Package transfer brings files to machines over a slow or interrupted link: a file is identified by its digest,
// is continued where a killed run has ended, and machines fetch it from one another.
package transfer

import (
	"context"
	_ "embed" // begin.sh, put.sh, fetch.sh, place.sh
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The parts of the scripts that write a file by its digest: putScript continues what a killed run has sent,
// fetchScript fetches the file from another machine.
var (
	//go:embed begin.sh
	beginScript string
	//go:embed put.sh
	receiveScript string
	//go:embed fetch.sh
	takeScript string
	//go:embed place.sh
	placeScript string

	putScript   = beginScript + receiveScript + placeScript
	fetchScript = beginScript + takeScript + placeScript
)

// File is a file of this machine for other machines.
type File struct {
	From     string // on this machine
	To       string // on the other one
	Mode     os.FileMode
	Compress bool // while this machine sends it
}

// suffix is the end of the name of a part that was sent compressed.
func (f File) suffix() string {
	if f.Compress {
		return ".gz"
	}
	return ""
}

// Send sends the file from this machine, and continues what an earlier run has sent.
func (f File) Send(ctx context.Context, to access.Executor) error {
	digest, err := remote.Sum(f.From)
	if err != nil {
		return err
	}
	size := access.Script(`stat -c %s "$1" 2>/dev/null || echo 0`, f.To+".part-"+digest+f.suffix())
	there, err := access.Output(ctx, to, size...)
	if err != nil {
		return err
	}
	begun, _ := strconv.ParseInt(strings.TrimSpace(there), 10, 64)
	in, begun, err := f.open(ctx, begun)
	if err != nil {
		return err
	}
	defer in.Close()
	return access.RunScript(ctx, to, in, putScript, f.To, f.modeText(), digest, strconv.FormatInt(begun, 10), f.suffix())
}

func (f File) modeText() string { return fmt.Sprintf("%04o", f.Mode) }

// open returns what is sent after the first bytes, and the number of these bytes: 0 if there are fewer.
func (f File) open(ctx context.Context, begun int64) (io.ReadCloser, int64, error) {
	in, err := f.content(ctx)
	if err != nil || begun == 0 {
		return in, 0, err
	}
	if _, err := io.CopyN(io.Discard, in, begun); err == nil {
		return in, begun, nil
	}
	_ = in.Close()
	in, err = f.content(ctx)
	return in, 0, err
}

// content returns what is sent. It reports how much of the file was read.
func (f File) content(ctx context.Context) (io.ReadCloser, error) {
	file, err := os.Open(f.From)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	in := &counted{ReadCloser: file, ctx: ctx, total: info.Size()}
	if !f.Compress {
		return in, nil
	}
	return compressed(in), nil
}

// compressed returns the content as gzip writes it, which every system can read. The result is the same
// each time, so that a part can be continued.
func compressed(in io.ReadCloser) io.ReadCloser {
	out, to := io.Pipe()
	go func() {
		defer in.Close()
		writer := gzip.NewWriter(to)
		_, err := io.Copy(writer, in)
		if err == nil {
			err = writer.Close()
		}
		to.CloseWithError(err)
	}()
	return out
}

// counted reports how much of a file was read.
type counted struct {
	io.ReadCloser
	ctx         context.Context
	read, total int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read += int64(n)
	step.Report(c.ctx, "send", c.read, c.total)
	return n, err
}
