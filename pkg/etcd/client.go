package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Access is a client certificate for etcd, and the CA of etcd. Paths are paths
// of the host.
type Access struct {
	Files         host.Files
	CA, Cert, Key string
}

// Client returns a client that uses any endpoint that answers. It connects on
// first use. The caller must close it.
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
	pair, err := host.ClientPair(files, cert, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: pool, GetClientCertificate: pair, MinVersion: tls.VersionTLS12}, nil
}

// read makes a linearizable read, which needs a leader and a quorum.
func read(ctx context.Context, client *clientv3.Client) error {
	if _, err := client.Get(ctx, "health"); err != nil {
		return fmt.Errorf("etcd does not answer: %w", err)
	}
	return nil
}
