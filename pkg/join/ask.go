package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	maxSkew = 5 * time.Minute
	// answerLimit is the time in which an API server answers each request, if only with an error (its
	// --request-timeout), and in which it restarts.
	answerLimit = time.Minute
)

// question is a request, which may be sent several times, and its answer.
type question struct {
	method, path, body string
	what               string // that the answer contains, for an error
	into               any
	came               progress // of all requests
}

// ready waits until the API server is ready. Before, it refuses connections, does not know its tokens yet and
// forbids everything. The first API server of a cluster restarts when the second serves.
func (d *discovery) ready(ctx context.Context) error {
	q := &question{method: http.MethodGet, path: "/readyz"}
	return d.until(ctx, q, func(ctx context.Context) error {
		response, err := d.send(ctx, q, "")
		if err != nil {
			return retryable(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return unreachable(d.Server, fmt.Errorf("it is not ready (%s)", response.Status))
		}
		return nil
	})
}

// ask sends a request until it is answered.
func (d *discovery) ask(ctx context.Context, q *question) error {
	return d.until(ctx, q, func(ctx context.Context) error { return retryable(d.read(ctx, q)) })
}

// retryable returns err for another try if the server may answer later.
func retryable(err error) error {
	if isProblem(err, controlPlaneUnreachable) {
		return err
	}
	return step.Final(err)
}

// until is step.Until with the limit of a Check. A server that starts, that waits for its disk, or that has not yet
// signed cluster-info for a token that it knows, gets answerLimit. An address that no host has gets no more time.
func (d *discovery) until(ctx context.Context, q *question, probe func(context.Context) error) error {
	ctx = step.WithoutBusy(ctx)
	err := step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), probe, nil)
	silent := func() bool { return errors.As(err, new(*silence)) }
	late := isProblem(err, controlPlaneUnreachable) && !q.came.noRoute.Load() ||
		silent() && q.came.connected.Load() || isProblem(err, "cluster-info")
	if late && ctx.Err() == nil {
		err = step.Until(step.WithLimit(ctx, answerLimit), probe, nil)
	}
	if silent() {
		return unreachable(d.Server, errors.New(q.lacks()))
	}
	return err
}

// read sends a request once and reads the answer.
func (d *discovery) read(ctx context.Context, q *question) error {
	response, err := d.send(ctx, q, d.Token.Reveal())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := d.refused(response, q.what); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return d.unanswered(ctx, err)
	}
	return json.Unmarshal(answer, q.into)
}

// send sends a request once. Without a token, the request is anonymous.
func (d *discovery) send(ctx context.Context, q *question, token string) (*http.Response, error) {
	traced := httptrace.WithClientTrace(ctx, q.came.trace())
	request, err := http.NewRequestWithContext(traced, q.method, "https://"+d.Server+q.path, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := d.http.Do(request)
	if err != nil {
		return nil, d.unanswered(ctx, err)
	}
	return response, nil
}

// unanswered returns the problem of a request that failed.
func (d *discovery) unanswered(ctx context.Context, err error) error {
	var problem *step.Problem
	var request *url.Error
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case ctx.Err() != nil:
		return &silence{ctx.Err()}
	case errors.As(err, &request):
		err = request.Err // without the URL
	}
	return unreachable(d.Server, err)
}

// silence is the error that a server did not answer in time. It wraps the deadline, so that step.Until reports
// an earlier answer.
type silence struct{ error }

func (s *silence) Unwrap() error { return s.error }

func (d *discovery) refused(response *http.Response, what string) error {
	now := time.Now()
	there, err := http.ParseTime(response.Header.Get("Date"))
	if err == nil && there.Sub(now).Abs() > maxSkew {
		return clockOff(d.Server, there, now)
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusCreated:
		return nil
	case http.StatusUnauthorized:
		return unknownToken(d.Server, d.Token)
	case http.StatusNotFound, http.StatusForbidden:
		return notAControlPlane(d.Server, what)
	default:
		return unreachable(d.Server, fmt.Errorf("it answers %s", response.Status))
	}
}

// progress is how far the requests came. The transport may still dial after the end of a request.
type progress struct {
	connected, sent atomic.Bool
	noRoute         atomic.Bool // no host has the address, or no network: it may be mistyped
}

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			p.noRoute.Store(errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH))
			if err == nil {
				p.connected.Store(true)
			}
		},
		GotConn: func(httptrace.GotConnInfo) { // after the TLS handshake
			p.connected.Store(true)
			p.sent.Store(true)
		},
	}
}

// lacks returns what the server has not done yet.
func (q *question) lacks() string {
	switch {
	case q.came.sent.Load():
		return fmt.Sprintf("it has not answered %s %s in time", q.method, q.path)
	case q.came.connected.Load():
		return "it has not completed the TLS handshake in time"
	}
	return "it has not accepted a connection in time"
}
