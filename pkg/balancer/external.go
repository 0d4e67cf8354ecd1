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
	// lookupEvery is the interval between two DNS lookups of the control planes.
	lookupEvery = 3 * time.Second
	// firstLookup is the interval until the first lookup succeeds.
	firstLookup = 200 * time.Millisecond
)

// External forwards connections from clients outside of a cluster to a ready control plane. It finds
// the control planes by a DNS name and has no credentials.
type External struct {
	Name string // resolves to the addresses of all control planes that run
	Port int    // of the API servers, on which External listens too
}

// Serve forwards connections until ctx ends.
func (f External) Serve(ctx context.Context) error {
	servers := f.servers()
	go f.follow(ctx, servers)
	return servers.serve(ctx, ":"+strconv.Itoa(f.Port))
}

// servers returns a pool that checks readiness without verifying the server's certificate,
// because it sends nothing secret. Clients verify it themselves.
func (f External) servers() *pool {
	trust := func() (*tls.Config, error) {
		return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, nil //nolint:gosec // see above
	}
	return newPool("", f.Port, Probe(trust, "/readyz"))
}

// follow updates the pool with the addresses of the name. Without an address, all control planes
// are off, and get the old addresses again.
func (f External) follow(ctx context.Context, servers *pool) {
	for pause := firstLookup; ctx.Err() == nil; {
		limited, cancel := context.WithTimeout(ctx, lookupEvery) //nolint:forbidigo // a single try: the loop goes on
		if ips, err := net.DefaultResolver.LookupHost(limited, f.Name); err == nil && len(ips) > 0 {
			servers.use(ctx, ips)
			pause = lookupEvery
		}
		cancel()
		_ = step.Pause(ctx, pause)
	}
}
