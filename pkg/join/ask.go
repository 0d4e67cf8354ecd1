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
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	maxSkew = 5 * time.Minute
	// answerLimit is the time in which an API server answers each request, if only
	// with an error (its --request-timeout).
	answerLimit = time.Minute
)

// get reads one object, and turns every failure into the Problem it is.
func (d *discovery) get(ctx context.Context, path, what string, into any) error {
	return d.ask(ctx, http.MethodGet, path, "", what, into)
}

// ask sends a request until it is answered.
func (d *discovery) ask(ctx context.Context, method, path, body, what string, into any) error {
	return d.until(ctx, func(ctx context.Context) error {
		return step.Final(d.send(ctx, method, path, body, what, into))
	})
}

// until is step.Until with the limit of a Check. An API server that has proved
// that it is the wanted one, and does not answer, is slow: for example, its etcd
// waits for the disk. It gets the time in which it answers every request.
func (d *discovery) until(ctx context.Context, probe func(context.Context) error) error {
	err := step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), probe, nil)
	if !errors.As(err, new(*silence)) || d.ca.Load() == nil || ctx.Err() != nil {
		return err
	}
	return step.Until(step.WithLimit(ctx, answerLimit), probe, nil)
}

// send sends a request once.
func (d *discovery) send(ctx context.Context, method, path, body, what string, into any) error {
	var came progress
	traced := httptrace.WithClientTrace(ctx, came.trace())
	request, err := http.NewRequestWithContext(traced, method, "https://"+d.Server+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+d.Token.Reveal())
	request.Header.Set("Accept", "application/json")
	response, err := d.http.Do(request)
	if err != nil {
		return d.unanswered(ctx, err, came.lacks(method, path))
	}
	defer response.Body.Close()
	if err := d.refused(response, what); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return d.unanswered(ctx, err, came.lacks(method, path))
	}
	return json.Unmarshal(answer, into)
}

// unanswered returns the problem of a request that failed. lacks is what the
// server has not done in time, if that is the reason.
func (d *discovery) unanswered(ctx context.Context, err error, lacks string) error {
	var problem *step.Problem
	var request *url.Error
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case ctx.Err() != nil:
		return &silence{unreachable(d.Server, errors.New(lacks))}
	case errors.As(err, &request):
		err = request.Err // without the URL
	}
	return unreachable(d.Server, err)
}

// silence is the problem that a server did not answer in time. It wraps the
// deadline, so that step.Until reports an earlier answer.
type silence struct{ error }

func (s *silence) Unwrap() []error { return []error{s.error, context.DeadlineExceeded} }

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
		return notAMaster(d.Server, what)
	default:
		return unreachable(d.Server, fmt.Errorf("it answers %s", response.Status))
	}
}

// progress is how far a request came. The transport may still dial after the end
// of the request.
type progress struct{ connected, sent atomic.Bool }

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				p.connected.Store(true)
			}
		},
		GotConn: func(httptrace.GotConnInfo) { p.sent.Store(true) }, // after the TLS handshake
	}
}

// lacks returns what the server has not done yet.
func (p *progress) lacks(method, path string) string {
	switch {
	case p.sent.Load():
		return fmt.Sprintf("it has not answered %s %s in time", method, path)
	case p.connected.Load():
		return "it has not completed the TLS handshake in time"
	}
	return "it has not accepted a connection in time"
}
