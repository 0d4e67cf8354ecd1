package snapshot

import (
	"os"

	"golang.org/x/sys/unix"
)

// Memory returns a file that is in memory only.
func Memory() (*os.File, error) {
	fd, err := unix.MemfdCreate("etcd", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "etcd"), nil
}
