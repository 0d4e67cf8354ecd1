// Package addresses reads and writes IP addresses and ranges of them, as settings list them.
package addresses

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Range is a range of addresses of one family.
type Range struct {
	First, Last netip.Addr
	network     netip.Prefix // which the text of the range was; not valid if it was none
}

// Text returns the range as Parse reads it: FIRST-LAST, or the network that Parse has read.
func (r Range) Text() string {
	if r.network.IsValid() {
		return r.network.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

// Text returns an address; "" if it is not set.
func Text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func (r Range) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

// Contains reports whether the range has an address.
func (r Range) Contains(a netip.Addr) bool {
	return r.First.BitLen() == a.BitLen() && !a.Less(r.First) && !r.Last.Less(a)
}

// Overlaps reports whether two ranges have an address in common.
func (r Range) Overlaps(other Range) bool {
	return r.Contains(other.First) || other.Contains(r.First)
}

// Of returns the addresses of a network as a range.
func Of(network netip.Prefix) Range {
	last := network.Masked().Addr().AsSlice()
	for bit := network.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last) // has 4 or 16 bytes
	return Range{First: network.Masked().Addr(), Last: end}
}

// Parse reads FIRST-LAST or a network.
func Parse(s string) (Range, error) {
	read := networkRange
	if strings.Contains(s, "-") {
		read = boundedRange
	}
	r, err := read(s)
	switch {
	case err != nil:
	case !r.First.IsGlobalUnicast() || !r.Last.IsGlobalUnicast():
		err = errors.New("must have only addresses that other machines can reach")
	case r.Last.Less(r.First):
		err = fmt.Errorf("ends before it begins; write %s-%s", r.Last, r.First)
	}
	return r, err
}

var errNoRange = errors.New("must be a range or a network, such as 192.168.1.240-192.168.1.250 or fd00::/120")

func networkRange(s string) (Range, error) {
	network, err := netip.ParsePrefix(s)
	if err != nil || network.Addr().Is4In6() {
		return Range{}, errNoRange
	}
	if network != network.Masked() {
		return Range{}, fmt.Errorf("has host bits set; write %s", network.Masked())
	}
	r := Of(network)
	r.network = network
	return r, nil
}

func boundedRange(s string) (Range, error) {
	first, last, _ := strings.Cut(s, "-")
	from, err := netip.ParseAddr(first)
	to, toErr := netip.ParseAddr(last)
	if err != nil || toErr != nil || from.BitLen() != to.BitLen() || from.Is4In6() || to.Is4In6() ||
		from.Zone()+to.Zone() != "" {
		return Range{}, errNoRange
	}
	return Range{First: from, Last: to}, nil
}
