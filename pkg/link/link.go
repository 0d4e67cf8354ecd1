// Package link makes requests over links that are slow and break: it waits when
// it is told to, asks again, notices silence, and keeps off plain HTTP.
package link

import (
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
	// Tries is how often something is asked for that does not come on.
	Tries      = 6
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
	// longestWait is what we grant a server that names a time itself.
	longestWait = 10 * time.Minute
)

// ErrPlainHTTP refuses what anybody on the way could change or read.
var ErrPlainHTTP = errors.New("plain HTTP was not asked for")

// Encrypted lets only those hosts be asked by plain HTTP that the user said so
// of: the registry library would try it by itself with private addresses.
type Encrypted struct {
	Next  http.RoundTripper
	Plain []string
}

// RoundTrip refuses, or hands on.
func (p Encrypted) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && !slices.Contains(p.Plain, req.URL.Host) {
		return nil, ErrPlainHTTP
	}
	return p.Next.RoundTrip(req)
}

// StalledError says that a server sent nothing for long.
type StalledError struct {
	host  string
	limit time.Duration
}

func (s *StalledError) Error() string {
	return fmt.Sprintf("%s sent nothing for %s", s.host, s.limit)
}

// BrokenError is an answer that ended before its end.
type BrokenError struct{ Err error }

func (b *BrokenError) Error() string { return "it broke off: " + b.Err.Error() }
func (b *BrokenError) Unwrap() error { return b.Err }

// Silence ends a request whose server falls silent, before or while it answers.
type Silence struct {
	Next  http.RoundTripper
	Limit time.Duration
}

// RoundTrip hands on, and listens.
func (s Silence) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(s.Limit, func() { cancel(&StalledError{req.URL.Host, s.Limit}) })
	resp, err := s.Next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = why(ctx, err)
		cancel(nil)
		return nil, err
	}
	timer.Stop()
	resp.Body = &heard{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, timer: timer, limit: s.Limit}
	return resp, nil
}

// why prefers the reason that a context was ended for to "context canceled".
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// heard is a body that must go on. The time between two reads is the reader's,
// which may be a slow disk.
type heard struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func (h *heard) Read(p []byte) (int, error) {
	h.timer.Reset(h.limit)
	n, err := h.ReadCloser.Read(p)
	h.timer.Stop()
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

// Patient asks again, with pauses that grow or as the server says. What may
// not be asked twice unbidden is asked again only if the server says when.
type Patient struct {
	Next http.RoundTripper
	// Unreached is how often a server that does not answer at all is tried; 0 is
	// Tries. The first word to a server is better told soon to be in vain: its
	// address may be wrong.
	Unreached int
}

// RoundTrip makes the request as often as it takes, or Tries times.
func (p Patient) RoundTrip(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := p.Next.RoundTrip(req)
		wait, reason, again := later(req, resp, err, try)
		if !again || try == Tries || err != nil && try == p.Unreached {
			return resp, err
		}
		if err := Rest(req.Context(), wait, reason); err != nil {
			return nil, errors.Join(err, closed(resp))
		}
		next, ok := repeat(req)
		if !ok {
			return resp, err // the caller has to make it anew, now that it waited
		}
		if err := closed(resp); err != nil {
			return nil, err
		}
		req = next
	}
}

// later says whether to ask again, when, and why.
func later(req *http.Request, resp *http.Response, err error, try int) (wait time.Duration, reason string, again bool) {
	harmless := req.Method == http.MethodGet || req.Method == http.MethodHead
	if err != nil {
		return Pause(try), err.Error(), harmless && Passing(err)
	}
	wait, told := retryAfter(resp, time.Now())
	if !told {
		wait = Pause(try)
	}
	return wait, req.URL.Host + " answers " + resp.Status, busy(resp) && (told || harmless) && wait <= longestWait
}

// busy reports whether another time the answer may be better.
func busy(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// repeat returns the same request again, unless its body is used up.
func repeat(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := req.Clone(req.Context())
	again.Body = body
	return again, true
}

func closed(resp *http.Response) error {
	if resp == nil {
		return nil
	}
	return resp.Body.Close()
}

// Passing tells errors of the link from those that stay.
func Passing(err error) bool {
	var stalled *StalledError
	var broken *BrokenError
	var name *net.DNSError
	var operation *net.OpError
	var limited net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &name):
		return name.IsTemporary || name.IsTimeout
	case errors.As(err, &stalled), errors.As(err, &broken), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		// What net/http says of a request that it was still sending.
		errors.Is(err, net.ErrClosed):
		return true
	case errors.As(err, &operation):
		return operation.Op != "remote error" // a TLS alert
	}
	return errors.As(err, &limited) && limited.Timeout()
}

// Pause is how long to wait after so many tries in vain.
func Pause(try int) time.Duration { return min(firstPause<<(try-1), maxPause) }

// retryAfter reads the header of that name: seconds, or a date.
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

// Rest waits and says why.
func Rest(ctx context.Context, wait time.Duration, reason string) error {
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
