package host

import (
	"net"
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPortFree: the port of one address is taken. 192.0.2.1 belongs to no machine.
func TestPortFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	for text, taken := range map[string]bool{"127.0.0.1": true, "0.0.0.0": true, "127.0.0.2": false, "192.0.2.1": false} {
		if err := PortFree(netip.AddrPortFrom(netip.MustParseAddr(text), port)); (err != nil) != taken {
			t.Errorf("%s: %v", text, err)
		}
	}
}
