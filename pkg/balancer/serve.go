package balancer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const (
	etcdPort   = 2379
	watchPause = time.Second // after a watch that broke
)

// Watch tells of all control planes, at once and whenever they change; of each
// where it is and whether it is joining. It returns when ctx ends, or when it
// can tell no more.
type Watch func(ctx context.Context, tell func([]ControlPlane)) error

// Serve balances until ctx ends. It calls answers when an API server takes
// connections after an outage in which none did.
func Serve(ctx context.Context, files host.Files, s Settings, watch Watch, answers func(outage time.Duration)) error {
	known, err := ReadState(files)
	if err != nil {
		return err
	}
	api, etcd, err := s.pools(files)
	if err != nil {
		return err
	}
	d := &daemon{files: files, state: known, api: api, etcd: etcd}
	api.changed, etcd.changed = d.save, d.save
	api.answers = answers
	both, ctx := errgroup.WithContext(ctx)
	d.use(ctx)
	both.Go(func() error { return api.serve(ctx, s.Address()) })
	both.Go(func() error { return etcd.serve(ctx, s.EtcdAddress()) })
	go d.follow(ctx, watch)
	return both.Wait()
}

func (s Settings) pools(files host.Files) (api, etcd *pool, err error) {
	toAPI, errAPI := clientTLS(files, s.ClusterCA, "", "")
	toEtcd, errEtcd := clientTLS(files, s.EtcdCA, s.Cert, s.Key)
	if err := errors.Join(errAPI, errEtcd); err != nil {
		return nil, nil, err
	}
	return newPool(s.Own, s.APIPort, get(toAPI, "/readyz")), newPool(s.Own, etcdPort, get(toEtcd, "/health")), nil
}

func clientTLS(files host.Files, ca, cert, key string) (*tls.Config, error) {
	data, err := files.Read(ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !config.RootCAs.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("no certificate in %s", ca)
	}
	if cert != "" {
		if config.GetClientCertificate, err = files.ClientPair(cert, key); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// get is the question whether a server is ready, by its own word. An etcd
// without a leader, and the API server of one, say no.
func get(trust *tls.Config, path string) func(context.Context, string) error {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: trust, ForceAttemptHTTP2: true, IdleConnTimeout: 10 * probeEvery,
		DialContext: (&net.Dialer{Timeout: dialLimit}).DialContext,
	}}
	return func(ctx context.Context, address string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body) // or the connection is not used again
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	}
}

// daemon keeps both pools on the control planes that there are, and the state
// file on what is known.
type daemon struct {
	files     host.Files
	api, etcd *pool

	mu    sync.Mutex
	state State
}

// follow never ends by itself: a host without its control planes goes on with
// those that it knew.
func (d *daemon) follow(ctx context.Context, watch Watch) {
	for ctx.Err() == nil {
		_ = watch(ctx, func(all []ControlPlane) { d.told(ctx, all) })
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

// told takes over what a control plane says. A list without a server is that
// of a cluster which is being made.
func (d *daemon) told(ctx context.Context, all []ControlPlane) {
	now := State{ControlPlanes: all, Told: true}
	if len(now.Addresses()) == 0 {
		return
	}
	d.mu.Lock()
	d.state = now
	d.mu.Unlock()
	d.use(ctx)
	d.save()
}

func (d *daemon) use(ctx context.Context) {
	d.mu.Lock()
	addresses := d.state.Addresses()
	d.mu.Unlock()
	d.api.use(ctx, addresses)
	d.etcd.use(ctx, addresses)
}

// save writes the state, if it is another one. Where the disk is full the
// balancer goes on all the same.
func (d *daemon) save() {
	d.mu.Lock()
	defer d.mu.Unlock()
	api, etcd := d.api.ready(), d.etcd.ready()
	now := State{Told: d.state.Told}
	for _, c := range d.state.ControlPlanes {
		c.APIServer, c.Etcd = api[c.IP], etcd[c.IP]
		now.ControlPlanes = append(now.ControlPlanes, c)
	}
	if !d.written(now) {
		_ = writeState(d.files, now)
	}
}

// written reports whether the file says the same.
func (d *daemon) written(now State) bool {
	old, err := ReadState(d.files)
	return err == nil && old.Told == now.Told && slices.Equal(old.ControlPlanes, now.ControlPlanes)
}

func address(ip string, port int) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }
