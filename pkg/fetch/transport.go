package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	tries      = 6 // without a byte of progress between them
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
	// longestWait is what we grant a server that names a time itself.
	longestWait = 10 * time.Minute
)

// named says who we are to those who did not.
type named struct{ next http.RoundTripper }

func (n named) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("User-Agent") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", userAgent)
	}
	return n.next.RoundTrip(req)
}

// errPlainHTTP refuses what anybody on the way could change or read.
var errPlainHTTP = errors.New("plain HTTP was not asked for")

// plainHTTP lets only those hosts be asked by plain HTTP that the user said so
// of: the registry library would try it by itself with private addresses.
type plainHTTP struct {
	next    http.RoundTripper
	allowed []string
}

func (p plainHTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && !slices.Contains(p.allowed, req.URL.Host) {
		return nil, errPlainHTTP
	}
	return p.next.RoundTrip(req)
}

// stalledError says that a server sent nothing for long.
type stalledError struct {
	host  string
	limit time.Duration
}

func (s *stalledError) Error() string {
	return fmt.Sprintf("%s sent nothing for %s", s.host, s.limit)
}

// silence ends a request whose server falls silent, before or while it answers.
type silence struct {
	next  http.RoundTripper
	limit time.Duration
}

func (s silence) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(s.limit, func() { cancel(&stalledError{req.URL.Host, s.limit}) })
	resp, err := s.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = why(ctx, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &heard{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, timer: timer, limit: s.limit}
	return resp, nil
}

// why prefers the reason that a context was ended for to "context canceled".
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// heard is a body that must go on.
type heard struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n > 0 {
		h.timer.Reset(h.limit)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = why(h.ctx, err)
	}
	return n, err
}

func (h *heard) Close() error {
	h.timer.Stop()
	h.cancel(nil)
	return h.ReadCloser.Close()
}

// patient asks again, with pauses that grow or as the server says.
type patient struct{ next http.RoundTripper }

func (p patient) RoundTrip(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := p.next.RoundTrip(req)
		if try == tries || !again(resp, err) || req.Body != nil && req.Body != http.NoBody {
			return resp, err
		}
		wait, reason := pause(try), ""
		if err != nil {
			reason = err.Error()
		} else {
			asked, ok := retryAfter(resp)
			if asked > longestWait {
				return resp, nil
			}
			if ok {
				wait = asked
			}
			reason = req.URL.Host + " answers " + resp.Status
			resp.Body.Close()
		}
		if err := rest(req.Context(), wait, reason); err != nil {
			return nil, err
		}
	}
}

// again reports whether another try may end better.
func again(resp *http.Response, err error) bool {
	if err != nil {
		return passing(err)
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// passing tells errors of the link from those that stay.
func passing(err error) bool {
	var stalled *stalledError
	var broken *brokenError
	var name *net.DNSError
	var operation *net.OpError
	switch {
	case errors.As(err, &name):
		return name.IsTemporary || name.IsTimeout
	case errors.As(err, &stalled), errors.As(err, &broken), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return true
	case errors.As(err, &operation):
		return operation.Op != "remote error" // a TLS alert
	}
	return false
}

func pause(try int) time.Duration { return min(firstPause<<(try-1), maxPause) }

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0), true
	}
	return 0, false
}

// rest waits and says why.
func rest(ctx context.Context, wait time.Duration, reason string) error {
	step.Report(ctx, fmt.Sprintf("%s; again in %s", reason, wait.Round(100*time.Millisecond)), 0, 0)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// counter adds up the bytes of several transfers that belong together.
type counter struct {
	ctx   context.Context
	what  string
	mu    sync.Mutex
	done  int64
	total int64
	told  time.Time
}

// add counts n bytes; a transfer that starts anew takes its own back.
func (c *counter) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	if now := time.Now(); now.Sub(c.told) > 100*time.Millisecond || c.done == c.total {
		c.told = now
		step.Report(c.ctx, c.what, c.done, c.total)
	}
}

func (c *counter) expect(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += n
}
