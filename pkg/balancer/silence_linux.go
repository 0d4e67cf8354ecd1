package balancer

import "golang.org/x/sys/unix"

// limitSilence makes the kernel end a connection whose packets nobody acknowledges.
func limitSilence(fd int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
}
