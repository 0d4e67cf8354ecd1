package machines

import (
	"context"
	_ "embed" // put.sh
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// putScript receives a file by its digest, and continues what a killed run has sent.
//
//go:embed put.sh
var putScript string

// upload is a file of this machine that a machine gets below programDir.
type upload struct {
	from, to string
	mode     os.FileMode
}

// differs reports whether a machine does not have the file, by its digest.
func (u upload) differs(ctx context.Context, p *Provider, name string) (bool, error) {
	facts, err := p.Facts(ctx)
	if err != nil {
		return false, err
	}
	digest, err := remote.Sum(u.from)
	return facts[name].Digests[u.to] != digest, err
}

// step returns the step that sends the file, unless the machine has it.
func (u upload) step(p *Provider, name string, uploads chan struct{}) step.Step {
	todo := "write " + name + ":" + programDir + "/" + u.to
	differs := func(ctx context.Context) (bool, error) { return u.differs(ctx, p, name) }
	put := func(ctx context.Context) error {
		select {
		case uploads <- struct{}{}:
			defer func() { <-uploads }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return u.send(ctx, p.Node(name), programDir+"/"+u.to)
	}
	return step.When(step.IDOf("put", u.to, name), "put "+u.to+" on "+name, todo, differs, put).Waiting()
}

func (u upload) send(ctx context.Context, to access.Connection, path string) error {
	digest, err := remote.Sum(u.from)
	if err != nil {
		return err
	}
	file, err := os.Open(u.from)
	if err != nil {
		return err
	}
	defer file.Close()
	size := access.Script(`stat -c %s "$1" 2>/dev/null || echo 0`, path+".part-"+digest)
	there, err := access.Output(ctx, to, size...)
	if err != nil {
		return err
	}
	begun, _ := strconv.ParseInt(strings.TrimSpace(there), 10, 64)
	info, err := file.Stat()
	if err == nil && begun > info.Size() {
		begun = 0
	}
	if err == nil {
		_, err = file.Seek(begun, io.SeekStart)
	}
	if err != nil {
		return err
	}
	report := func(sent, total int64) { step.Report(ctx, "send", sent, total) }
	in := &counted{Reader: file, sent: begun, total: info.Size(), report: report}
	args := access.Script(putScript, path, fmt.Sprintf("%04o", u.mode), digest, strconv.FormatInt(begun, 10))
	return to.Exec(ctx, host.Command{Args: args, Stdin: in})
}

// counted reports how much of a file was read.
type counted struct {
	io.Reader
	sent, total int64
	report      func(sent, total int64)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.sent += int64(n)
	c.report(c.sent, c.total)
	return n, err
}
