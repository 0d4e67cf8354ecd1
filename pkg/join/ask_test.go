package join

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestALostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	m := newControlPlane(t, nil,
		func(m *testControlPlane) { m.silent = func(nth int32) bool { return nth == 1 || nth == 3 } })
	if _, err := Discover(t.Context(), m.target()); err != nil {
		t.Error(err)
	}
}

// TestASlowControlPlane: a server that accepts connections has more time to answer than
// the limit of a Check.
func TestASlowControlPlane(t *testing.T) {
	t.Parallel()
	began := time.Now()
	m := newControlPlane(t, nil, func(m *testControlPlane) {
		m.silent = func(int32) bool { return time.Since(began) < step.CheckLimit(t.Context())+time.Second }
	})
	if err := tryOnce(t.Context(), m.target()); err != nil {
		t.Error(err)
	}
}

// TestAControlPlaneThatStarts: an API server that starts refuses connections. It then knows no
// token and forbids everything, until it is ready.
func TestAControlPlaneThatStarts(t *testing.T) {
	t.Parallel()
	m := newControlPlane(t, nil, nil)
	target := m.target()
	m.Close()
	began := time.Now()
	m.starting = func() bool { return time.Since(began) < time.Second }
	server := &http.Server{Handler: m, TLSConfig: m.TLS}
	t.Cleanup(func() { server.Close() })
	time.AfterFunc(300*time.Millisecond, func() {
		l, err := net.Listen("tcp", target.Server)
		if err == nil {
			err = server.ServeTLS(l, "", "")
		}
		if !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	if _, err := Discover(t.Context(), target); err != nil {
		t.Error(err)
	}
}

// TestATokenThatWasCreatedJustNow: an API server learns of a token a moment after its creation.
func TestATokenThatWasCreatedJustNow(t *testing.T) {
	t.Parallel()
	m := newControlPlane(t, nil, nil)
	m.unaware = func() bool { return m.asked.Load() < 5 }
	if _, err := Discover(t.Context(), m.target()); err != nil {
		t.Error(err)
	}
}

// TestTheReasonOfSilence: the problem states how far the requests came, and a
// request that the end of the wait cancels hides no earlier answer.
func TestTheReasonOfSilence(t *testing.T) {
	t.Parallel()
	never := func(nth int32) bool { return true }
	for name, c := range map[string]struct {
		adjust  func(*testControlPlane)
		server  string
		problem string
		says    string
	}{
		"no TLS": {nil, backlog(t), "control-plane-unreachable", "it has not completed the TLS handshake in time"},
		"no answer": {func(m *testControlPlane) {
			m.silent = never
		}, "", "control-plane-unreachable", "it has not answered GET /readyz in time"},
		"not signed": {func(m *testControlPlane) {
			m.unsigned, m.silent = true, func(nth int32) bool { return nth > 2 }
		}, "", "cluster-info", "is not signed with the token"},
	} {
		m := newControlPlane(t, nil, c.adjust)
		target := m.target()
		if c.server != "" {
			target.Server = c.server
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		problems := step.Problems(tryOnce(ctx, target))
		if len(problems) != 1 || problems[0].Name != c.problem || !strings.Contains(problems[0].Text, c.says) {
			t.Errorf("%s: got %v", name, problems)
		}
	}
	if got := new(question).lacks(); got != "it has not accepted a connection in time" {
		t.Errorf("without a connection: %q", got)
	}
}

// backlog returns the address of a server that never accepts a connection, which
// the kernel does instead.
func backlog(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestAnInterruptedRequestHasNoProblem(t *testing.T) {
	m := newControlPlane(t, nil, func(m *testControlPlane) { m.silent = func(int32) bool { return true } })
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted")
	time.AfterFunc(100*time.Millisecond, func() { cancel(interrupt) })
	if err := tryOnce(ctx, m.target()); !errors.Is(err, interrupt) || len(step.Problems(err)) > 0 {
		t.Errorf("got %v", err)
	}
}
