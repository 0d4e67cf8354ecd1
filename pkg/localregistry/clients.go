package localregistry

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Any process of the engine's machine and any pod may send requests. These limits
// bound what one of them can hold of the memory and of the time of the registry.
const (
	// nodeLimit is how long a client may send or read nothing.
	nodeLimit = 30 * time.Second
	// perByte is what it may need for each byte that it reads, on top: 1 MB/s.
	perByte = time.Microsecond
	// idleLimit is how long a client may keep a connection without a request.
	idleLimit = 2 * time.Minute
	// maxHeader is the size of the headers of a request in bytes.
	maxHeader = 64 << 10
	// maxConnections is the number of connections of one address. A node needs a few
	// per image that it pulls.
	maxConnections = 256
)

// withLimits returns a request and its answer, which end if the client is too slow.
// The caller calls end after the answer, whose last bytes are sent later. net/http
// removes the deadlines after the body and before the next request.
func withLimits(w http.ResponseWriter, r *http.Request, limit time.Duration) (_ http.ResponseWriter, _ *http.Request, end func()) {
	control := http.NewResponseController(w)
	r = r.WithContext(r.Context()) // a copy
	r.Body = limitedBody{r.Body, control, limit}
	return &limitedAnswer{ResponseWriter: w, control: control, limit: limit}, r, func() { _ = control.SetWriteDeadline(time.Now().Add(limit)) }
}

type limitedBody struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
}

func (b limitedBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(b.limit))
	return b.ReadCloser.Read(p)
}

type limitedAnswer struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration

	sent   int64
	waited time.Duration
}

var errSlow = errors.New("the client reads too slowly")

func (a *limitedAnswer) Write(p []byte) (int, error) {
	if a.waited > a.limit+time.Duration(a.sent)*perByte {
		return 0, errSlow
	}
	began := time.Now()
	_ = a.control.SetWriteDeadline(began.Add(a.limit))
	n, err := a.ResponseWriter.Write(p)
	a.sent, a.waited = a.sent+int64(n), a.waited+time.Since(began)
	return n, err
}

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
