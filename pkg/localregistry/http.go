package localregistry

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
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
	// maxConnections is that of one address. A node needs a few per image that it pulls.
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

// connections counts the connections of each address: a node must leave some to the other nodes.
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

// send answers with content, or with a part of it, and closes it.
func send(w http.ResponseWriter, r *http.Request, d digest.Digest, mediaType string, from content.ReaderAt) {
	defer from.Close()
	w.Header().Set("Content-Type", mediaType)
	describe(w, d)
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(from, 0, from.Size()))
}

// describe sets the headers of a manifest or a blob.
func describe(w http.ResponseWriter, d digest.Digest) {
	w.Header().Set("Docker-Content-Digest", d.String())
	w.Header().Set("Etag", strconv.Quote(d.String()))
}

// refuse answers with an error as the specification of OCI distribution wants it.
func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": text}}})
}

// fail answers with an error of the store or of an upstream, which a node then asks itself.
func fail(w http.ResponseWriter, unknown string, err error) {
	switch {
	case unstorable(err):
		// Docker (28.5) prints the message of a status below 500 only, and repeats the
		// upload unless the code is DENIED.
		refuse(w, http.StatusRequestEntityTooLarge, "DENIED", "the local registry cannot store this: "+withRemedy(err))
	case errdefs.IsNotFound(err), refused(err):
		refuse(w, http.StatusNotFound, unknown, err.Error())
	case errdefs.IsInvalidArgument(err):
		refuse(w, http.StatusBadRequest, unknown, err.Error())
	case errors.Is(err, errUpstream):
		refuse(w, http.StatusBadGateway, "UNAVAILABLE", err.Error())
	default:
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
	}
}

// unstorable reports whether the disk is full or read-only.
func unstorable(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// withRemedy returns an error with what a user may do about it. It does not name
// `docker system prune`, which removes the nodes of clusters that are down.
func withRemedy(err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return err.Error() + "; the log of the kernel of the Docker engine's machine may name the reason"
	case unstorable(err):
		return err.Error() + "; free disk space on the machine of the Docker engine, for example with `docker image prune`, or lower --local-registry-cache"
	}
	return err.Error()
}

// noteEvery is how often the log says that content is not stored.
const noteEvery = time.Hour

// note logs why content of another registry is not stored. The nodes get it nevertheless.
func (s *Server) note(err error) {
	if err == nil {
		return
	}
	now, last := time.Now().Unix(), s.noted.Load()
	if now-last < int64(noteEvery.Seconds()) || !s.noted.CompareAndSwap(last, now) {
		return
	}
	s.log("an image of another registry is passed on and not stored: " + withRemedy(err))
}
