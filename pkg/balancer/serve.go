package balancer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	watchPause = time.Second // after a watch that broke

	longestAnswer = 64 << 10 // bytes of a probe's answer that are read
	// failedShutdownCheck is in what /readyz answers once an API server shuts down.
	// https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/server/healthz/healthz.go#L119-L133
	failedShutdownCheck = "[-]shutdown failed"
)

// Discover calls report with all control planes, at its start and after each
// change. It returns when ctx ends or the watch breaks.
type Discover func(ctx context.Context, report func([]Backend)) error

// Serve balances until ctx ends. It calls answers after an outage of all API servers.
func Serve(
	ctx context.Context, files host.Files, s Settings, watch Discover, answers func(outage time.Duration),
) error {
	known, err := ReadBackends(files)
	if err != nil {
		return err
	}
	toAPI := func() (*tls.Config, error) { return host.ClientTLS(files, s.ClusterCA, "", "") }
	toEtcd := func() (*tls.Config, error) { return host.ClientTLS(files, s.EtcdCA, s.Cert, s.Key) }
	api, etcd := newPool(s.Own, s.APIPort, Probe(toAPI, "/readyz")),
		newPool(s.Own, s.EtcdPort, Probe(toEtcd, "/health"))
	d := &daemon{files: files, backends: known, api: api, etcd: etcd}
	api.changed, etcd.changed = d.save, d.save
	api.answers = answers
	both, ctx := errgroup.WithContext(ctx)
	d.use(ctx, known)
	both.Go(func() error { return api.serve(ctx, s.Address()) })
	both.Go(func() error { return etcd.serve(ctx, s.EtcdAddress()) })
	go d.follow(ctx, watch)
	return both.Wait()
}

// Probe returns a probe of a readiness endpoint. etcd without a leader, and an API server without
// etcd, are not ready. trust is called per connection, because authorities can be replaced.
func Probe(trust func() (*tls.Config, error), path string) func(context.Context, string) error {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		config, err := trust()
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{NetDialer: &net.Dialer{Timeout: dialLimit}, Config: config}).DialContext(ctx,
			network, address)
	}
	client := &http.Client{Transport: &http.Transport{DialTLSContext: dial, IdleConnTimeout: 10 * probeEvery}}
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
		// to its end, so that the connection is reused
		body, _ := io.ReadAll(io.LimitReader(answer.Body, longestAnswer))
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		if bytes.Contains(body, []byte(failedShutdownCheck)) {
			return errShutdown
		}
		return errors.New(answer.Status)
	}
}

// daemon updates both pools and the state file.
type daemon struct {
	files     host.Files
	api, etcd *pool

	mu       sync.Mutex
	backends Backends
}

// follow repeats watch. Without a control plane that answers, the known ones stay.
func (d *daemon) follow(ctx context.Context, watch Discover) {
	for ctx.Err() == nil {
		_ = watch(ctx, func(all []Backend) { d.adopt(ctx, all) })
		_ = step.Pause(ctx, watchPause)
	}
}

// adopt adopts the list of a control plane, unless it is that of a new cluster without a server.
func (d *daemon) adopt(ctx context.Context, all []Backend) {
	now := Backends{ControlPlanes: all, Known: true}
	if len(now.Addresses()) == 0 {
		return
	}
	d.mu.Lock()
	d.backends = now
	d.mu.Unlock()
	d.use(ctx, now)
	d.save()
}

func (d *daemon) use(ctx context.Context, s Backends) {
	d.api.use(ctx, s.Addresses())
	d.etcd.use(ctx, s.Addresses())
}

// save writes the state if it has changed. It ignores errors, for example of a full disk.
func (d *daemon) save() {
	d.mu.Lock()
	defer d.mu.Unlock()
	api, etcd := d.api.ready(), d.etcd.ready()
	now := Backends{Known: d.backends.Known}
	for _, c := range d.backends.ControlPlanes {
		c.APIServer, c.Etcd = api[c.IP], etcd[c.IP]
		now.ControlPlanes = append(now.ControlPlanes, c)
	}
	old, err := ReadBackends(d.files)
	if err != nil || old.Known != now.Known || !slices.Equal(old.ControlPlanes, now.ControlPlanes) {
		_ = stateRecord.Write(d.files, now)
	}
}
