package registry

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const (
	dialLimit   = 10 * time.Second
	answerLimit = time.Minute
	// tries and firstPause make about half a minute in all.
	tries      = 7
	firstPause = 500 * time.Millisecond
	// maxWait is the longest that a registry may ask us to wait at a time.
	maxWait = 5 * time.Minute
)

// transport is one connection pool with the registry's TLS.
func (r *Registry) transport() (http.RoundTripper, error) {
	config, err := r.tls()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialLimit}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   dialLimit,
		ResponseHeaderTimeout: answerLimit,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   8,
	}, nil
}

// Options are for go-containerregistry's remote package.
func (r *Registry) Options(ctx context.Context) ([]remote.Option, error) {
	t, err := r.transport()
	if err != nil {
		return nil, err
	}
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithTransport(patient{r.guarded(t)}),
		remote.WithAuth(authn.FromConfig(r.Auth)),
		remote.WithUserAgent("kube-bootstrap"),
		remote.WithRetryBackoff(remote.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.1, Steps: tries}),
		remote.WithRetryPredicate(passes),
	}, nil
}

// passes reports whether an error may be gone at the next try.
func passes(err error) bool {
	var timeout net.Error
	var temporary interface{ Temporary() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &timeout) && timeout.Timeout():
		return true
	case errors.As(err, &temporary) && temporary.Temporary():
		return true
	}
	for _, passing := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// guarded keeps credentials off plain HTTP: go-containerregistry would try it
// with private addresses by itself, and a redirect could lead there.
func (r *Registry) guarded(t http.RoundTripper) http.RoundTripper {
	if r.Insecure {
		return t
	}
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		if request.URL.Scheme != "https" {
			return nil, errPlainHTTP
		}
		return t.RoundTrip(request)
	})
}

var errPlainHTTP = errors.New("plain HTTP is refused without --insecure")

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// patient waits as long as a registry that is too busy asks for. A request
// whose body is gone is left to the caller to make again, after the wait.
type patient struct{ http.RoundTripper }

func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		response, err := p.RoundTripper.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		wait, told := retryAfter(response, time.Now())
		if !told || try == tries {
			return response, nil
		}
		if err := sleep(request.Context(), wait); err != nil {
			response.Body.Close()
			return nil, err
		}
		again, ok := repeat(request)
		if !ok {
			return response, nil
		}
		response.Body.Close()
		request = again
	}
}

func repeat(request *http.Request) (*http.Request, bool) {
	if request.Body == nil || request.Body == http.NoBody {
		return request, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, false
	}
	again := request.Clone(request.Context())
	again.Body = body
	return again, true
}

// retryAfter returns how long to wait, given in seconds or as a date.
func retryAfter(response *http.Response, now time.Time) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	text := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, maxWait), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxWait), true
	}
	return 0, false
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
