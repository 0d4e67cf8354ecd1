package host

import (
	"errors"
	"net"
	"syscall"
)

// RemoveDeadSockets removes the Unix stream sockets that match a pattern and
// on which no process listens.
func (f Files) RemoveDeadSockets(pattern string) error {
	var errs []error
	for _, path := range f.Match(pattern) {
		if isDeadSocket(f.Path(path)) {
			errs = append(errs, f.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// isDeadSocket connects with a datagram socket, so that the daemon behind a
// stream socket does not notice: the kernel answers EPROTOTYPE if a process
// listens. /proc/net/unix is no alternative, because a read of it may miss
// entries while other sockets are closed.
func isDeadSocket(path string) bool {
	conn, err := net.Dial("unixgram", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
