package machines

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines/transfer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// relay brings the program of one architecture to the machines. This machine sends it to the first one, and
// the others fetch it from there, so that a slow link carries it once. A machine that cannot fetch it gets
// it from this machine.
type relay struct {
	program transfer.File
	mu      sync.Mutex // held while the first machine gets the program
	source  string     // the machine that has the program; "": none yet
	offer   func() (transfer.Offer, error)
}

// relay returns the relay of an architecture.
func (t *transfers) relay(ctx context.Context, arch string) (*relay, error) {
	program, err := t.program(ctx, arch)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.relays[arch]; known != nil {
		return known, nil
	}
	made := &relay{program: program}
	made.source = t.holderOf(ctx, made.program, arch)
	made.offer = sync.OnceValues(func() (transfer.Offer, error) { return t.serve(ctx, made.source) })
	t.relays[arch] = made
	return made, nil
}

// holderOf returns a machine of an architecture that has the program, or "".
func (t *transfers) holderOf(ctx context.Context, program transfer.File, arch string) string {
	for _, m := range t.provider.choice.Machines {
		name := m.Spec.Name
		differs, err := t.differs(ctx, program, name)
		if t.facts[name].Arch == arch && !differs && err == nil {
			return name
		}
	}
	return ""
}

// put brings the program to a machine.
func (t *transfers) put(ctx context.Context, via *relay, name string) error {
	send := func() error { return t.send(ctx, via.program, name) }
	if first, err := via.first(name, send); first {
		return err
	}
	from, err := via.offer()
	if err == nil && via.program.Fetch(ctx, t.provider.Node(name), from) == nil {
		return nil
	}
	return send()
}

// first sends the program to a machine if no machine has it. It reports whether it did.
func (r *relay) first(name string, send func() error) (first bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != "" {
		return false, nil
	}
	if err = send(); err == nil {
		r.source = name
	}
	return true, err
}

// serveLimit is how long a machine may need to start its server.
const serveLimit = 15 * time.Second

// serve starts the server of the program on a machine. It runs until the relays end.
func (t *transfers) serve(ctx context.Context, name string) (transfer.Offer, error) {
	addr := t.facts[name].Addr
	if !addr.IsValid() {
		return transfer.Offer{}, fmt.Errorf("machine %s has no address that others reach", name)
	}
	ctx, cancel := context.WithCancel(ctx)
	in, stop := io.Pipe()
	out, said := io.Pipe()
	var running sync.WaitGroup
	running.Go(func() {
		said.CloseWithError(t.provider.Node(name).Exec(ctx, host.Command{
			Args: []string{t.provider.ProgramPath(), "serve-program", addr.String()}, Stdin: in, Stdout: said,
		}))
	})
	t.atEnd(func() { _ = stop.Close(); cancel(); running.Wait() })
	late := time.AfterFunc(serveLimit, func() { _ = out.CloseWithError(context.DeadlineExceeded) })
	defer late.Stop()
	return transfer.ReadOffer(out, addr)
}

func (t *transfers) atEnd(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = append(t.ends, do)
}

// end ends all servers.
func (t *transfers) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, end := range t.ends {
		end()
	}
	t.ends = nil
}
