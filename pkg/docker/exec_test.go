package docker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// blocked is an output that is written to until it is closed.
type blocked chan struct{}

func (b blocked) Write(p []byte) (int, error) {
	<-b
	return len(p), nil
}

// TestNothingIsWrittenAfterAnInterrupt: the caller reads the output, such as a strings.Builder.
func TestNothingIsWrittenAfterAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, engine := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		output := make(blocked)
		run := &execution{
			command: host.Command{Stdout: output},
			stream:  client.HijackedResponse{Conn: conn, Reader: bufio.NewReader(conn)},
		}
		returned := make(chan error, 1)
		go func() { returned <- run.copy(ctx) }()
		_, err := engine.Write(append([]byte{byte(stdcopy.Stdout), 0, 0, 0, 0, 0, 0, 4}, "text"...))
		must.NoError(t, err)
		cancel()
		time.Sleep(time.Minute) // of the bubble's clock
		select {
		case err := <-returned:
			t.Errorf("it returned during a write: %v", err)
			returned <- err
		default:
		}
		close(output)
		if err := <-returned; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestLongAnswersAreCut: the programs of a container choose how much they print. This machine keeps
// a limited part of it in memory.
func TestLongAnswersAreCut(t *testing.T) {
	var reason beginning
	pid := firstLine{rest: &reason}
	for range 100 {
		if n, err := pid.Write(make([]byte, 64<<10)); n != 64<<10 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if len(pid.text()) > longestPID || len(reason.String()) != longestReason {
		t.Errorf("kept are %d bytes of the first line and %d of the rest", len(pid.text()), len(reason.String()))
	}
}

func TestFirstLineIsKept(t *testing.T) {
	for _, pieces := range [][]string{{"12", "3\nerr", "or\n"}, {"123\nerror\n"}, {"123\n", "error\n"}} {
		var rest bytes.Buffer
		f := firstLine{rest: &rest}
		for _, p := range pieces {
			if n, err := f.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatalf("wrote %d, %v", n, err)
			}
		}
		if f.text() != "123" || rest.String() != "error\n" {
			t.Errorf("%q: first line %q, rest %q", pieces, f.text(), rest.String())
		}
	}
}
