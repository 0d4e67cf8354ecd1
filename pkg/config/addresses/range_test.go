package addresses

import (
	"net/netip"
	"testing"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"192.168.1.240-192.168.1.250": "192.168.1.240-192.168.1.250",
		"10.0.0.9-10.0.0.9":           "10.0.0.9",
		"192.168.1.240/28":            "192.168.1.240-192.168.1.255",
		"10.0.0.0/9":                  "10.0.0.0-10.127.255.255",
		"fd00::/120":                  "fd00::-fd00::ff",
		"fd00::1-fd00::2":             "fd00::1-fd00::2",
	} {
		if got, err := Parse(in); err != nil || got.String() != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestRangesOverlap(t *testing.T) {
	r, _ := Parse("10.0.0.10-10.0.0.20")
	for in, want := range map[string]bool{
		"10.0.0.1-10.0.0.9": false, "10.0.0.1-10.0.0.10": true, "10.0.0.12-10.0.0.13": true,
		"10.0.0.0/8": true, "10.0.0.20-10.0.0.30": true, "10.0.0.21-10.0.0.30": false, "fd00::/8": false,
	} {
		other, err := Parse(in)
		if err != nil || r.Overlaps(other) != want || other.Overlaps(r) != want {
			t.Errorf("%s overlaps %s: not %v, %v", r, in, want, err)
		}
	}
	if r.Contains(netip.MustParseAddr("::ffff:10.0.0.12")) {
		t.Error("a range of IPv4 addresses contains an IPv6 address")
	}
}
