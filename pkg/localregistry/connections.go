package localregistry

import (
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// idleLimit is how long a client may keep a connection without a request.
	idleLimit = 2 * time.Minute
	// maxHeader is the size of the headers of a request in bytes.
	maxHeader = 64 << 10
	// maxConnections is the number of connections of one address. A node needs a few
	// per image that it pulls.
	maxConnections = 256
)

// newHTTPServer returns the server for a handler.
func newHTTPServer(h http.Handler) *http.Server {
	clients := connections{open: map[string]int{}}
	return &http.Server{Handler: h, ReadHeaderTimeout: nodeLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHeader, ConnState: clients.changed}
}

// connections counts the connections of each address, so that the pods of one node
// leave the registry usable for the other nodes.
type connections struct {
	mu   sync.Mutex
	open map[string]int
}

// changed closes a new connection of an address that has too many.
func (c *connections) changed(of net.Conn, state http.ConnState) {
	addr, _, _ := net.SplitHostPort(of.RemoteAddr().String())
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[addr]++
		if c.open[addr] > maxConnections {
			of.Close()
		}
	case http.StateClosed:
		if c.open[addr]--; c.open[addr] == 0 {
			delete(c.open, addr)
		}
	}
}
