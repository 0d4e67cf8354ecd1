package links

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// maxReads bounds the reads of a list that changes all the time. A second read
// is rarely necessary: each lasts microseconds.
const maxReads = 100

// consistent reads a list from the kernel until no change interrupted the read.
// The kernel sends a list in parts; if an entry was added or removed between two
// of them, the list may lack others, and the library returns it with
// [netlink.ErrDumpInterrupted].
func consistent[T any](read func() ([]T, error)) (list []T, err error) {
	for range maxReads {
		if list, err = read(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return list, err
		}
	}
	return nil, err
}

// addrsOf returns the IPv4 addresses of a link, or of all links.
func addrsOf(l netlink.Link) ([]netlink.Addr, error) {
	return consistent(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_V4) })
}
