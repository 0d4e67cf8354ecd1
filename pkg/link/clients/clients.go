// Package clients bounds what one client can hold of the memory and of the time of a server of
// kube-bootstrap.
package clients

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits are the limits of each client of a server.
type Limits struct {
	Silence time.Duration // how long a client may send or read nothing
	// PerByte is what it may need for each byte that it reads, in addition to Silence.
	PerByte     time.Duration
	Idle        time.Duration // how long it may keep a connection without a request
	Header      int           // the size of the headers of a request in bytes
	Connections int           // of one address
}

// ErrSlow is the error of an answer that a client reads too slowly.
var ErrSlow = errors.New("the client reads too slowly")

// Request returns a request and its answer, which end if the client is too slow.
// The caller calls end after the answer, whose last bytes are sent later. net/http
// removes the deadlines after the body and before the next request.
func (l Limits) Request(w http.ResponseWriter, r *http.Request) (_ http.ResponseWriter, _ *http.Request, end func()) {
	control := http.NewResponseController(w)
	r = r.WithContext(r.Context()) // a copy
	r.Body = body{r.Body, control, l.Silence}
	return &answer{ResponseWriter: w, control: control,
		limits: l}, r, func() { _ = control.SetWriteDeadline(time.Now().Add(l.Silence)) }
}

type body struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
}

func (b body) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(b.limit))
	return b.ReadCloser.Read(p)
}

type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	limits  Limits

	sent   int64
	waited time.Duration
}

func (a *answer) Write(p []byte) (int, error) {
	if a.waited > a.limits.Silence+time.Duration(a.sent)*a.limits.PerByte {
		return 0, ErrSlow
	}
	began := time.Now()
	_ = a.control.SetWriteDeadline(began.Add(a.limits.Silence))
	n, err := a.ResponseWriter.Write(p)
	a.sent, a.waited = a.sent+int64(n), a.waited+time.Since(began)
	return n, err
}

// Server returns the server for a handler, which calls Request.
func (l Limits) Server(h http.Handler) *http.Server {
	all := connections{limit: l.Connections, open: map[string]int{}}
	return &http.Server{
		Handler: h, ReadHeaderTimeout: l.Silence, IdleTimeout: l.Idle, MaxHeaderBytes: l.Header, ConnState: all.changed,
	}
}

// connections counts the connections of each address: a client must leave some to the others.
type connections struct {
	limit int
	mu    sync.Mutex
	open  map[string]int
}

// changed closes a new connection of an address that has too many.
func (c *connections) changed(of net.Conn, state http.ConnState) {
	addr, _, _ := net.SplitHostPort(of.RemoteAddr().String())
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[addr]++
		if c.open[addr] > c.limit {
			of.Close()
		}
	case http.StateClosed:
		if c.open[addr]--; c.open[addr] == 0 {
			delete(c.open, addr)
		}
	}
}
