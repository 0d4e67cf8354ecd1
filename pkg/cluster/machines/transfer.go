package machines

import (
	"context"
	_ "embed" // begin.sh, put.sh, fetch.sh, place.sh
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
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

// mostUploads is the number of files that leave this machine at the same time.
const mostUploads = 5

// transfers brings files to the machines of a run.
type transfers struct {
	provider *Provider
	facts    map[string]Facts
	program  func(ctx context.Context, arch string) (upload, error)
	slots    chan struct{}

	mu     sync.Mutex
	relays map[string]*relay // of the program, by architectures
	ends   []func()          // of servers
}

func newTransfers(o Options, p *Provider, facts map[string]Facts) *transfers {
	program := func(ctx context.Context, arch string) (upload, error) {
		path, err := o.Program(ctx, o.Bundle, arch)
		return upload{from: path, to: programFile, mode: 0o755, compress: true}, err
	}
	return &transfers{
		provider: p, facts: facts, program: program, slots: make(chan struct{}, mostUploads), relays: map[string]*relay{},
	}
}

// step returns the step that sends the file, unless the machine has it.
func (t *transfers) step(u upload, name string) step.Step {
	return u.step(t.provider, name, func(ctx context.Context) error { return t.send(ctx, u, name) })
}

// send sends a file from this machine, as one of a few at the same time.
func (t *transfers) send(ctx context.Context, u upload, name string) error {
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return u.send(ctx, t.provider.Node(name), u.path())
}

// upload is a file of this machine that a machine gets below programDir.
type upload struct {
	from, to string
	mode     os.FileMode
	compress bool // while it is sent
}

// path is the path on the machine.
func (u upload) path() string { return programDir + "/" + u.to }

// differs reports whether a machine does not have the file, by its digest.
func (u upload) differs(ctx context.Context, p *Provider, name string) (bool, error) {
	facts, err := p.Facts(ctx)
	if err != nil {
		return false, err
	}
	digest, err := remote.Sum(u.from)
	return facts[name].Digests[u.to] != digest, err
}

// step returns the step that brings the file to a machine by put, unless the machine has it.
func (u upload) step(p *Provider, name string, put func(context.Context) error) step.Step {
	differs := func(ctx context.Context) (bool, error) { return u.differs(ctx, p, name) }
	id := step.IDOf("put", u.to, name)
	return step.When(id, "put "+u.to+" on "+name, "write "+name+":"+u.path(), differs, put).Waiting()
}

// suffix is the end of the name of a part that was sent compressed.
func (u upload) suffix() string {
	if u.compress {
		return ".gz"
	}
	return ""
}

func (u upload) send(ctx context.Context, to access.Connection, path string) error {
	digest, err := remote.Sum(u.from)
	if err != nil {
		return err
	}
	size := access.Script(`stat -c %s "$1" 2>/dev/null || echo 0`, path+".part-"+digest+u.suffix())
	there, err := access.Output(ctx, to, size...)
	if err != nil {
		return err
	}
	begun, _ := strconv.ParseInt(strings.TrimSpace(there), 10, 64)
	in, begun, err := u.open(ctx, begun)
	if err != nil {
		return err
	}
	defer in.Close()
	args := access.Script(putScript, path, u.modeText(), digest, strconv.FormatInt(begun, 10), u.suffix())
	return withoutScript(to.Exec(ctx, host.Command{Args: args, Stdin: in}))
}

// withoutScript returns the error of a script of this package without its text.
func withoutScript(err error) error {
	failed, ok := errors.AsType[*host.CommandError](err)
	if !ok {
		return err
	}
	if said := strings.TrimSpace(failed.Output); said != "" {
		return errors.New(said)
	}
	return failed.Err
}

func (u upload) modeText() string { return fmt.Sprintf("%04o", u.mode) }

// open returns what is sent after the first bytes, and the number of these bytes: 0 if there are fewer.
func (u upload) open(ctx context.Context, begun int64) (io.ReadCloser, int64, error) {
	in, err := u.content(ctx)
	if err != nil || begun == 0 {
		return in, 0, err
	}
	if _, err := io.CopyN(io.Discard, in, begun); err == nil {
		return in, begun, nil
	}
	_ = in.Close()
	in, err = u.content(ctx)
	return in, 0, err
}

// content returns what is sent. It reports how much of the file was read.
func (u upload) content(ctx context.Context) (io.ReadCloser, error) {
	file, err := os.Open(u.from)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	in := &counted{ReadCloser: file, ctx: ctx, total: info.Size()}
	if !u.compress {
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
