package etcd

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Endpoint is the port for clients of this host's etcd, with the credentials
// of user root.
type Endpoint struct {
	Access
	IP string
}

// Client returns a client for this host's etcd, see Access.Client.
func (e Endpoint) Client(ctx context.Context) (*clientv3.Client, error) {
	return e.Access.Client(ctx, e.URL())
}

// URL returns the URL of the port.
func (e Endpoint) URL() string { return clientURL(e.IP) }

func clientURL(ip string) string { return "https://" + net.JoinHostPort(ip, "2379") }

func peerURL(ip string) string { return "https://" + net.JoinHostPort(ip, "2380") }

// Do calls do with a client of this host's etcd.
func (e Endpoint) Do(ctx context.Context, do func(*clientv3.Client) error) error {
	client, err := e.Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

// Look calls ask, a query of a Check, with a client of this host's etcd. It
// returns new if etcd has never run here.
func (e Endpoint) Look(ctx context.Context, new step.Diff, ask func(context.Context, *clientv3.Client) (step.Diff, error)) (step.Diff, error) {
	client, err := e.Client(ctx)
	if errors.Is(err, fs.ErrNotExist) || !HasData(e.Files) {
		return new, nil
	}
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := e.answers(ctx, client); err != nil {
		return nil, step.NoAnswer(err)
	}
	diff, err := ask(ctx, client)
	if len(step.Problems(err)) > 0 {
		return nil, err
	}
	return diff, step.NoAnswer(err)
}

// answers sends one request. If etcd is silent, it returns the reason.
func (e Endpoint) answers(ctx context.Context, client *clientv3.Client) error {
	if err := listens(ctx, e.IP); err != nil {
		return err
	}
	soon, cancel := step.Half(ctx)
	defer cancel()
	if err := read(soon, client); err != nil {
		return cmp.Or(e.lostQuorum(ctx), err)
	}
	return nil
}

// listens dials the port once, because the client would retry a closed port
// until its deadline.
func listens(ctx context.Context, ip string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(ip, "2379"))
	if err != nil {
		return err
	}
	return conn.Close()
}
