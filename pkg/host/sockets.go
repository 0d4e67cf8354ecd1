package host

import (
	"errors"
	"net"
	"syscall"
)

// ShimSockets matches the sockets of containerd's shims. One stays if containerd's client
// ended while the shim started, or if the shim was killed (seen with containerd 2.1).
const ShimSockets = "/run/containerd/s/*"

// RemoveDeadSockets removes the matching stream sockets on which no process listens.
func RemoveDeadSockets(files Files, pattern string) error {
	return Each(files.Match(pattern), func(path string) error {
		if !isDeadSocket(files.Path(path)) {
			return nil
		}
		return files.Remove(path)
	})
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
