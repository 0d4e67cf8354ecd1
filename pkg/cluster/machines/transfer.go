package machines

import (
	"context"
	"strings"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines/transfer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// mostUploads is the number of files that leave this machine at the same time.
const mostUploads = 5

// transfers brings files to the machines of a run.
type transfers struct {
	provider *Provider
	facts    map[string]Facts
	program  func(ctx context.Context, arch string) (transfer.File, error)
	slots    chan struct{}

	mu     sync.Mutex
	relays map[string]*relay // of the program, by architectures
	ends   []func()          // of servers
}

func newTransfers(o Options, p *Provider, facts map[string]Facts) *transfers {
	program := func(ctx context.Context, arch string) (transfer.File, error) {
		path, err := o.Program(ctx, o.Bundle, arch)
		return transfer.File{From: path, To: programDir + "/" + programFile, Mode: 0o755, Compress: true}, err
	}
	return &transfers{
		provider: p, facts: facts, program: program, slots: make(chan struct{}, mostUploads), relays: map[string]*relay{},
	}
}

// sending returns the step that sends the file, unless the machine has it.
func (t *transfers) sending(f transfer.File, name string) step.Step {
	return t.step(f, name, func(ctx context.Context) error { return t.send(ctx, f, name) })
}

// send sends a file from this machine, as one of a few at the same time.
func (t *transfers) send(ctx context.Context, f transfer.File, name string) error {
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return f.Send(ctx, t.provider.Node(name))
}

// short returns the path of a file below programDir.
func short(f transfer.File) string { return strings.TrimPrefix(f.To, programDir+"/") }

// differs reports whether a machine does not have the file, by its digest.
func (t *transfers) differs(ctx context.Context, f transfer.File, name string) (bool, error) {
	facts, err := t.provider.Facts(ctx)
	if err != nil {
		return false, err
	}
	digest, err := remote.Sum(f.From)
	return facts[name].Digests[short(f)] != digest, err
}

// step returns the step that brings the file to a machine by put, unless the machine has it.
func (t *transfers) step(f transfer.File, name string, put func(context.Context) error) step.Step {
	differs := func(ctx context.Context) (bool, error) { return t.differs(ctx, f, name) }
	id := step.IDOf("put", f.To, name)
	return step.When(id, "put "+short(f)+" on "+name, "write "+name+":"+f.To, differs, put).Waiting()
}
