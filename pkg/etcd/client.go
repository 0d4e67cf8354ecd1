package etcd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Credentials are a client certificate for etcd and etcd's CA, by their paths on the host.
type Credentials struct {
	Files         host.Files
	CA, Cert, Key string
	// Issue makes a certificate for a server that does not trust the authority of Cert. The
	// control planes of a cluster change this authority one after the other. Nil: there is
	// no other certificate.
	Issue func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
}

// tls returns the configuration with which a server accepts the client.
func (c Credentials) tls() (*tls.Config, error) {
	config, err := host.ClientTLS(c.Files, c.CA, c.Cert, c.Key)
	if err != nil || c.Issue == nil {
		return config, err
	}
	own := config.GetClientCertificate
	config.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := own(asked)
		if err != nil || asked.SupportsCertificate(pair) == nil {
			return pair, err
		}
		return c.Issue(asked)
	}
	return config, nil
}

// Connect returns a client that uses any endpoint that answers. It connects on first use.
// The caller must close it.
func (c Credentials) Connect(ctx context.Context, endpoints ...string) (*clientv3.Client, error) {
	trust, err := c.tls()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context:              ctx,
		Endpoints:            endpoints,
		TLS:                  trust,
		Logger:               zap.NewNop(),
		DialOptions:          []grpc.DialOption{eager(ctx), grpc.WithNoProxy()}, // gRPC would use HTTPS_PROXY
		DialKeepAliveTime:    5 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		BackoffWaitBetween:   10 * time.Millisecond,
	})
}

// eager reconnects within milliseconds, because etcd is about to start on this host.
// gRPC's first backoff is a second.
func eager(ctx context.Context) grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: backoff.Config{
			BaseDelay: 10 * time.Millisecond, Multiplier: 1.1, MaxDelay: 250 * time.Millisecond,
		},
		MinConnectTimeout: step.CheckLimit(ctx),
	})
}

// read makes a linearizable read, which needs a leader and a quorum.
func read(ctx context.Context, client *clientv3.Client) error {
	if _, err := client.Get(ctx, "health"); err != nil {
		return fmt.Errorf("etcd does not answer: %w", err)
	}
	return nil
}

// Client calls the etcd of this host as root.
type Client struct {
	Credentials Credentials
	IP          string // of this host
}

// Connect returns a connection to the etcd of this host, see Credentials.Connect.
func (c Client) Connect(ctx context.Context) (*clientv3.Client, error) {
	return c.Credentials.Connect(ctx, c.URL())
}

// URL returns the URL for clients.
func (c Client) URL() string { return clientURL(c.IP) }

// The ports of etcd, for clients and for other members.
const (
	ClientPort = 2379
	PeerPort   = 2380
)

// ClientAddress returns the address of the etcd of a host for clients.
func ClientAddress(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(ClientPort)) }

func clientURL(ip string) string { return "https://" + ClientAddress(ip) }

func peerURL(ip string) string { return "https://" + net.JoinHostPort(ip, strconv.Itoa(PeerPort)) }

// Do calls do with a client of this host's etcd.
func (c Client) Do(ctx context.Context, do func(*clientv3.Client) error) error {
	client, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

// tooSlow are answers of an etcd that has not made a change in its own time: the disk of its host is
// slow, or the members elect a leader.
var tooSlow = []error{
	rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
	rpctypes.ErrTimeoutWaitAppliedIndex, rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged,
}

// Change is Do for a change that may be made twice. As long as etcd answers that it was too slow, it
// calls do again, up to the limit of ctx: etcd waits seven seconds for its disk, however slow the host
// is. do sets the limits of its requests.
func (c Client) Change(ctx context.Context, do func(*clientv3.Client) error) error {
	limit, cancel := step.Limited(ctx)
	defer cancel()
	return c.Do(ctx, func(client *clientv3.Client) error {
		for {
			err := do(client)
			if !slices.ContainsFunc(tooSlow, func(slow error) bool { return errors.Is(err, slow) }) {
				return err
			}
			step.Report(ctx, err.Error(), 0, 0)
			if step.Pause(limit, slowPause) != nil {
				return fmt.Errorf("not within %s: %w", step.Span(limit), err)
			}
		}
	})
}

// slowPause is the time until the next attempt: without a leader, etcd answers at once.
const slowPause = 250 * time.Millisecond

// Query calls ask, a query of a Check, with a client of this host's etcd. It
// returns new if etcd has never run here.
func (c Client) Query(
	ctx context.Context, new step.Diff, ask func(context.Context, *clientv3.Client) (step.Diff, error),
) (step.Diff, error) {
	client, err := c.Connect(ctx)
	if errors.Is(err, fs.ErrNotExist) || !DataOf(c.Credentials.Files).Exist() {
		return new, nil
	}
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := c.answers(ctx, client); err != nil {
		return nil, step.NoAnswer(err)
	}
	diff, err := ask(ctx, client)
	if len(step.Problems(err)) > 0 {
		return nil, err
	}
	return diff, step.NoAnswer(err)
}

// Step returns a step whose Check is Look, and whose Apply is Change.
func (c Client) Step(
	id step.ID, name string, new step.Diff,
	ask func(context.Context, *clientv3.Client) (step.Diff, error), do func(context.Context, *clientv3.Client) error,
) step.Step {
	return step.Step{
		ID: id, Name: name,
		Check: func(ctx context.Context) (step.Diff, error) { return c.Query(ctx, new, ask) },
		Apply: func(ctx context.Context) error {
			return c.Change(ctx, func(client *clientv3.Client) error { return do(ctx, client) })
		},
	}
}

// answers sends one request. If etcd is silent, it returns the reason.
func (c Client) answers(ctx context.Context, client *clientv3.Client) error {
	if err := listens(ctx, c.IP); err != nil {
		return err
	}
	soon, cancel := step.Half(ctx)
	defer cancel()
	if err := read(soon, client); err != nil {
		return cmp.Or(c.lostQuorum(ctx), err)
	}
	return nil
}

// listens dials the port once: the client would retry a closed port until its deadline.
func listens(ctx context.Context, ip string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", ClientAddress(ip))
	if err != nil {
		return err
	}
	return conn.Close()
}

// page is how many keys are read in one request: a value can be a megabyte.
const page = 50

// KeysWithout returns the keys below a prefix, without it, of values that do not begin
// with a text.
func KeysWithout(ctx context.Context, client *clientv3.Client, prefix, begins string) (keys []string, err error) {
	for from, end := prefix, clientv3.GetPrefixRangeEnd(prefix); ; {
		found, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return nil, fmt.Errorf("read the keys of etcd below %s: %w", prefix, err)
		}
		for _, kv := range found.Kvs {
			if !bytes.HasPrefix(kv.Value, []byte(begins)) {
				keys = append(keys, strings.TrimPrefix(string(kv.Key), prefix))
			}
		}
		if !found.More {
			return keys, nil
		}
		from = string(found.Kvs[len(found.Kvs)-1].Key) + "\x00"
	}
}
