package maindocker

import (
	"net/netip"
)

// hosts is the network of the hosts in these tests.
var hosts = netip.MustParsePrefix("192.168.1.0/24")
