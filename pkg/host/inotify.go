package host

import "golang.org/x/sys/unix"

// InotifyFree returns how many inotify instances the kernel still gives to
// this user, counted up to limit. Containers of one machine share them.
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
