package join

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// TestNoRouteIsNoServerThatStarts: a server that refuses connections may start, an address
// that no host has does not answer later either.
func TestNoRouteIsNoServerThatStarts(t *testing.T) {
	var came progress
	for _, c := range []struct {
		err  error
		want bool
	}{
		{syscall.EHOSTUNREACH, true}, {syscall.ECONNREFUSED, false}, {syscall.ENETUNREACH, true}, {nil, false},
	} {
		err := c.err
		if err != nil {
			err = &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", c.err)}
		}
		came.trace().ConnectDone("tcp", "192.0.2.1:6443", err)
		if got := came.noRoute.Load(); got != c.want {
			t.Errorf("%v: no route %t, want %t", err, got, c.want)
		}
	}
}
