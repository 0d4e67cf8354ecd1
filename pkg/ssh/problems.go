package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// dialError is the error of a connection without SSH: nothing listens, or there is no way.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// Unreachable is the error of a machine that does not answer, for example because it is switched off.
type Unreachable struct{ *step.Problem }

// Unwrap returns the problem.
func (u *Unreachable) Unwrap() error { return u.Problem }

// atHop adds to an error that it is about a hop.
func atHop(err error, t target) error {
	if p, ok := errors.AsType[*step.Problem](err); ok {
		told := *p
		told.Text = strings.Replace(p.Text, "machine "+t.name+": ", "machine "+t.name+": hop "+t.host+": ", 1)
		if _, off := errors.AsType[*Unreachable](err); off {
			return &Unreachable{&told}
		}
		return &told
	}
	return err
}

// explain returns the error of a connection as a problem that names the machine, the way and the remedy.
func explain(ctx context.Context, t target, via []string, offered []key, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p, ok := errors.AsType[*step.Problem](err); ok {
		return p
	}
	problem := func(name, text, remedy string) *step.Problem {
		text = fmt.Sprintf("machine %s: %s: %s", t.name, route(t, via), text)
		return &step.Problem{Name: name, Text: text, Remedy: remedy, Firm: true}
	}
	if _, ok := errors.AsType[*dialError](err); ok {
		return &Unreachable{dialProblem(t, err, problem)}
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "unable to authenticate") || strings.Contains(text, "authentication failures"):
		return problem("ssh-keys", fmt.Sprintf("no key is accepted; %s", names(offered)),
			"name the user and the key with ssh.user and ssh.identityFile")
	case early(err) || errors.Is(err, net.ErrClosed):
		return &Unreachable{problem("ssh-no-answer", "the connection ended before the server had answered as SSH",
			"check that an SSH server listens there, and its MaxStartups")}
	}
	return problem("ssh", text, "check that ssh connects there")
}

func names(offered []key) string {
	if len(offered) == 0 {
		return "there are none to offer"
	}
	var all []string
	for _, k := range offered {
		all = append(all, k.name)
	}
	return "tried: " + strings.Join(all, ", ")
}

// switchOn is the remedy for a machine that does not answer.
const switchOn = "switch the machine on, and check its address"

func dialProblem(t target, err error, problem func(name, text, remedy string) *step.Problem) *step.Problem {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	open, isOpen := errors.AsType[*cryptossh.OpenChannelError](err)
	switch {
	case isDNS && dns.IsNotFound:
		return problem("ssh-name", "the name "+dns.Name+" is unknown", "write an address")
	case errors.Is(err, syscall.ECONNREFUSED) || isOpen && strings.Contains(open.Message, "refused"):
		return problem("ssh-refused", fmt.Sprintf("nothing listens on port %d", t.port),
			"start the SSH server, or correct ssh.port")
	case isOpen && open.Reason == cryptossh.Prohibited:
		return problem("ssh-forwarding", "the hop refuses to forward: "+open.Message,
			"allow it with AllowTcpForwarding on the hop")
	case isOpen:
		return problem("ssh-unreachable", "the hop cannot connect: "+open.Message, switchOn)
	case errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH):
		return problem("ssh-unreachable", "there is no route", switchOn)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return problem("ssh-unreachable", fmt.Sprintf("no answer within %s", connectLimit), switchOn)
	}
	return problem("ssh-unreachable", err.Error(), "check its address")
}
