// Package link makes HTTP requests over slow and unreliable networks: it
// retries with backoff, detects servers that stop sending, and refuses plain
// HTTP.
package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// MaxAttempts is the number of attempts without progress after which a
	// request or a transfer fails.
	MaxAttempts = 6
	firstPause  = 500 * time.Millisecond
	maxPause    = 30 * time.Second
	// longestWait is the longest Retry-After that is respected.
	longestWait = 10 * time.Minute
)

// ErrPlainHTTP is returned for a request by plain HTTP, whose answer anyone
// on the network could read or change.
var ErrPlainHTTP = errors.New("plain HTTP was not asked for")

// HTTPSOnly is a transport that refuses plain HTTP, except to the hosts in
// Plain ("host:port"), which the user allowed. go-containerregistry falls
// back to plain HTTP by itself for registries at private addresses.
type HTTPSOnly struct {
	Next  http.RoundTripper
	Plain []string
}

// RoundTrip returns ErrPlainHTTP or calls Next.
func (p HTTPSOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && !slices.Contains(p.Plain, req.URL.Host) {
		return nil, ErrPlainHTTP
	}
	return p.Next.RoundTrip(req)
}

// StalledError is the error of a request whose server sent nothing for the
// idle timeout.
type StalledError struct {
	host  string
	limit time.Duration
}

func (s *StalledError) Error() string {
	return fmt.Sprintf("%s sent nothing for %s", s.host, s.limit)
}

// BrokenError is the error of a response body that ended too early.
type BrokenError struct{ Err error }

func (b *BrokenError) Error() string { return "the connection broke: " + b.Err.Error() }
func (b *BrokenError) Unwrap() error { return b.Err }

// IdleTimeout is a transport that ends a request if the server sends nothing for
// Limit, before or during the response body.
type IdleTimeout struct {
	Next  http.RoundTripper
	Limit time.Duration
}

// RoundTrip calls Next and supervises the response body.
func (s IdleTimeout) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(s.Limit, func() { cancel(&StalledError{req.URL.Host, s.Limit}) })
	resp, err := s.Next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	resp.Body = &idleTimeoutBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, timer: timer, limit: s.Limit}
	return resp, nil
}

// idleTimeoutBody is a response body whose Read fails if no data arrives within limit.
// The time between two reads does not count, because the reader may write to
// a slow disk.
type idleTimeoutBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func (h *idleTimeoutBody) Read(p []byte) (int, error) {
	h.timer.Reset(h.limit)
	n, err := h.ReadCloser.Read(p)
	h.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = cmp.Or(context.Cause(h.ctx), err)
	}
	return n, err
}

func (h *idleTimeoutBody) Close() error {
	h.timer.Stop()
	h.cancel(nil)
	return h.ReadCloser.Close()
}

// Retry is a transport that retries with exponential backoff or after the
// server's Retry-After. It retries requests other than GET and HEAD only if
// the server sent Retry-After.
type Retry struct {
	Next http.RoundTripper
	// ConnectAttempts is the maximum number of attempts if the server does not answer
	// at all; 0 means MaxAttempts. A low number reports a wrong address early.
	ConnectAttempts int
}

// RoundTrip makes the request up to MaxAttempts times.
func (p Retry) RoundTrip(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := p.Next.RoundTrip(req)
		wait, reason, again := retryAfterAnswer(req, resp, err, try)
		if !again || try == MaxAttempts || err != nil && try == p.ConnectAttempts {
			return resp, err
		}
		if err := Wait(req.Context(), wait, reason); err != nil {
			return nil, errors.Join(err, closed(resp))
		}
		next, ok := rewound(req)
		if !ok {
			return resp, err // the caller must make a new request; the backoff is over
		}
		if err := closed(resp); err != nil {
			return nil, err
		}
		req = next
	}
}

// retryAfterAnswer reports whether to retry, after which pause, and the reason to
// display.
func retryAfterAnswer(
	req *http.Request, resp *http.Response, err error, try int,
) (wait time.Duration, reason string, again bool) {
	harmless := req.Method == http.MethodGet || req.Method == http.MethodHead
	if err != nil {
		return Backoff(try), err.Error(), harmless && IsTransient(err)
	}
	wait, told := retryAfter(resp, time.Now())
	if !told {
		wait = Backoff(try)
	}
	return wait, req.URL.Host + " answers " + resp.Status, busy(resp) && (told || harmless) && wait <= longestWait
}

// busy reports whether a later request may succeed.
func busy(resp *http.Response) bool {
	return slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, resp.StatusCode)
}

// rewound returns the request with its body rewound, or false if the body
// cannot be read again.
func rewound(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	again := req.Clone(req.Context())
	var err error
	again.Body, err = req.GetBody()
	return again, err == nil
}

func closed(resp *http.Response) error {
	if resp == nil {
		return nil
	}
	return resp.Body.Close()
}

// IsTransient reports whether err is transient, so that a retry may succeed.
func IsTransient(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return name.IsTemporary || name.IsTimeout
	}
	_, stalled := errors.AsType[*StalledError](err)
	_, broken := errors.AsType[*BrokenError](err)
	// net/http returns net.ErrClosed if the connection broke while it sent the
	// request.
	if stalled || broken || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, net.ErrClosed) {
		return true
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return operation.Op != "remote error" // a TLS alert
	}
	limited, ok := errors.AsType[net.Error](err)
	return ok && limited.Timeout()
}

// Backoff returns the backoff after so many failed attempts.
func Backoff(try int) time.Duration { return min(firstPause<<(try-1), maxPause) }

// retryAfter parses the header Retry-After, which is a number of seconds or a
// date.
func retryAfter(resp *http.Response, now time.Time) (time.Duration, bool) {
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// GetFrom requests a file from an offset in bytes. A server may ignore the offset.
func GetFrom(ctx context.Context, client *http.Client, url string, offset int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	return client.Do(req)
}

// Wait waits for the given time and reports the reason as progress.
func Wait(ctx context.Context, wait time.Duration, reason string) error {
	step.Report(ctx, fmt.Sprintf("%s; retry in %s", reason, wait.Round(100*time.Millisecond)), 0, 0)
	return step.Pause(ctx, wait)
}
