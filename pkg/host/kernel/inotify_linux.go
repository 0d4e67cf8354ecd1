package kernel

import "golang.org/x/sys/unix"

// InotifyFree returns how many more inotify instances this user can create,
// at most limit. All containers of a machine share the kernel's maximum.
func InotifyFree(limit int) (int, error) {
	for n := range limit {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err == unix.EMFILE {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		defer unix.Close(fd)
	}
	return limit, nil
}
