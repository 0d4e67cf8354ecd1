package balancer

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"time"
)

const (
	// lookEvery is how often a Front asks which control planes there are.
	// Whether one of them is ready it finds out by itself, and sooner.
	lookEvery = 3 * time.Second
	// firstLook is how often it asks until there is one.
	firstLook = 200 * time.Millisecond
)

// Front leads clients outside of a cluster to a control plane that is ready. It
// finds the control planes by a name, and holds no credentials.
type Front struct {
	Name string // resolves to the addresses of all control planes that run
	Port int    // of the API servers, and its own
}

// Serve leads until ctx ends.
func (f Front) Serve(ctx context.Context) error {
	servers := f.servers()
	go f.follow(ctx, servers)
	return servers.serve(ctx, ":"+strconv.Itoa(f.Port))
}

// servers are asked whether they are ready, by a question that tells them
// nothing. Clients verify for themselves who answers: TLS goes through from end
// to end.
func (f Front) servers() *pool {
	trust := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // see above
	return newPool("", f.Port, get(trust, "/readyz"))
}

// follow keeps the pool on the addresses that the name has. While it has none,
// every control plane is off: they come back under the same addresses.
func (f Front) follow(ctx context.Context, servers *pool) {
	for pause := firstLook; ctx.Err() == nil; {
		limited, cancel := context.WithTimeout(ctx, lookEvery)
		if ips, err := net.DefaultResolver.LookupHost(limited, f.Name); err == nil && len(ips) > 0 {
			servers.use(ctx, ips)
			pause = lookEvery
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
