package balancer

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// lookEvery is the interval between two DNS lookups of the control planes.
	lookEvery = 3 * time.Second
	// firstLook is the interval until the first lookup succeeds.
	firstLook = 200 * time.Millisecond
)

// Front forwards connections from clients outside of a cluster to a ready control plane. It finds
// the control planes by a DNS name and has no credentials.
type Front struct {
	Name string // resolves to the addresses of all control planes that run
	Port int    // of the API servers, on which Front listens too
}

// Serve forwards connections until ctx ends.
func (f Front) Serve(ctx context.Context) error {
	servers := f.servers()
	go f.follow(ctx, servers)
	return servers.serve(ctx, ":"+strconv.Itoa(f.Port))
}

// servers returns a pool that checks readiness without verifying the server's certificate,
// because it sends nothing secret. Clients verify it themselves.
func (f Front) servers() *pool {
	trust := func() (*tls.Config, error) {
		return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, nil //nolint:gosec // see above
	}
	return newPool("", f.Port, Probe(trust, "/readyz"))
}

// follow updates the pool with the addresses of the name. Without an address, all control planes
// are off, and get the old addresses again.
func (f Front) follow(ctx context.Context, servers *pool) {
	for pause := firstLook; ctx.Err() == nil; {
		limited, cancel := context.WithTimeout(ctx, lookEvery) //nolint:forbidigo // a single try: the loop goes on
		if ips, err := net.DefaultResolver.LookupHost(limited, f.Name); err == nil && len(ips) > 0 {
			servers.use(ctx, ips)
			pause = lookEvery
		}
		cancel()
		_ = step.Pause(ctx, pause)
	}
}
