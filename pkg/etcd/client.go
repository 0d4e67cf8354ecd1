package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Client returns a client for this host's etcd as user root. It connects on
// first use. The caller must close it.
func (m Member) Client(ctx context.Context) (*clientv3.Client, error) {
	return m.Access().Client(ctx, m.url(2379))
}

// Access returns the credentials of this host's etcd user root.
func (m Member) Access() Access {
	return Access{Files: m.Files, CA: m.CA, Cert: m.RootCert, Key: m.RootKey}
}

// Access is a client certificate for etcd. Paths are paths of the host.
type Access struct {
	Files         host.Files
	CA, Cert, Key string
}

// Client returns a client that uses any endpoint that answers, see
// Member.Client.
func (a Access) Client(ctx context.Context, endpoints ...string) (*clientv3.Client, error) {
	trust, err := clientTLS(a.Files, a.CA, a.Cert, a.Key)
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context:              ctx,
		Endpoints:            endpoints,
		TLS:                  trust,
		Logger:               zap.NewNop(),
		DialOptions:          []grpc.DialOption{eager(ctx)},
		DialKeepAliveTime:    5 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		BackoffWaitBetween:   10 * time.Millisecond,
	})
}

// eager reconnects within milliseconds, because etcd is on this host and
// about to start. gRPC's first backoff is a second.
func eager(ctx context.Context) grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.3, MaxDelay: 250 * time.Millisecond},
		MinConnectTimeout: step.CheckLimit(ctx),
	})
}

func clientTLS(files host.Files, ca, cert, key string) (*tls.Config, error) {
	authority, err := files.Read(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", ca)
	}
	pair, err := files.ClientPair(cert, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: pool, GetClientCertificate: pair, MinVersion: tls.VersionTLS12}, nil
}

// ready waits until etcd answers a linearizable read.
func (m Member) ready(ctx context.Context) error {
	client, err := m.Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	probe := func(ctx context.Context) error { return read(ctx, client) }
	return step.Watching(ctx, m.watch, func(ctx context.Context) error {
		return step.Until(ctx, probe, func() string { return m.logTail(ctx) })
	})
}

// Look calls ask, a query of a Check, with a client of this host's etcd. It
// returns new if etcd has never run here.
func (m Member) Look(ctx context.Context, new step.Diff, ask func(context.Context, *clientv3.Client) (step.Diff, error)) (step.Diff, error) {
	client, err := m.Client(ctx)
	if errors.Is(err, fs.ErrNotExist) || !m.HasData() {
		return new, nil
	}
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := m.answers(ctx); err != nil {
		return nil, step.NoAnswer(err)
	}
	diff, err := ask(ctx, client)
	if len(step.Problems(err)) > 0 {
		return nil, err
	}
	return diff, step.NoAnswer(err)
}

// answers sends one request. If etcd is silent, it returns the reason.
func (m Member) answers(ctx context.Context) error {
	if err := m.listens(ctx); err != nil {
		return err
	}
	client, err := m.Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	soon, cancel := step.Half(ctx)
	defer cancel()
	if err := read(soon, client); err != nil {
		return cmp.Or(m.lostQuorum(ctx), err)
	}
	return nil
}

// listens dials the port once, because the client would retry a closed port
// until its deadline.
func (m Member) listens(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(m.IP, "2379"))
	if err != nil {
		return err
	}
	return conn.Close()
}

// read makes a linearizable read, which needs a leader and a quorum.
func read(ctx context.Context, client *clientv3.Client) error {
	if _, err := client.Get(ctx, "health"); err != nil {
		return fmt.Errorf("etcd does not answer: %w", err)
	}
	return nil
}

func (m Member) logTail(ctx context.Context) string { return m.service().Tail(ctx, 15) }
