package balancer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	dialLimit   = time.Second
	firstRetry  = 25 * time.Millisecond // while no server accepts connections
	retryGrowth = 25                    // each pause is longer than the last by this part of it
	maxRetry    = 500 * time.Millisecond
	probeEvery  = time.Second
	probeLimit  = 3 * time.Second
	// giveUpAfter is the number of consecutive failed probes after which connections to a server
	// are closed. After the first one, new connections avoid the server. A server that shuts down
	// keeps its connections: it still answers the requests on them, and then closes them itself.
	giveUpAfter = 5
	// silence is the time without an answer after which the kernel closes a connection.
	silence = 4 * time.Second
)

// errShutdown is the result of the probe of a server that shuts down.
var errShutdown = errors.New("the server shuts down")

// pool is the set of servers behind one port.
type pool struct {
	own     string
	port    int // of the servers
	probe   func(ctx context.Context, address string) error
	changed func() // a server turned ready, or no longer is
	// answers is called when a server takes connections again.
	answers func(outage time.Duration)
	every   time.Duration
	nobody  chan struct{} // a connection was refused by all servers
	rest    func(ctx context.Context, pause time.Duration) error

	mu      sync.Mutex
	servers map[string]*server // by address
}

type server struct {
	failed int // consecutive failed probes; 1 while the server shuts down
	conns  map[net.Conn]bool
	stop   context.CancelFunc
}

func newPool(own string, port int, probe func(context.Context, string) error) *pool {
	return &pool{
		own: own, port: port, probe: probe, changed: func() {}, answers: func(time.Duration) {}, every: probeEvery,
		nobody: make(chan struct{}, 1), rest: step.Pause, servers: map[string]*server{},
	}
}

// use sets the addresses, and closes connections to others, whose clients then reconnect.
func (p *pool) use(ctx context.Context, ips []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ip, s := range p.servers {
		if !slices.Contains(ips, ip) {
			s.stop()
			s.cut()
			delete(p.servers, ip)
		}
	}
	for _, ip := range ips {
		if p.servers[ip] == nil {
			ctx, stop := context.WithCancel(ctx)
			p.servers[ip] = &server{conns: map[net.Conn]bool{}, stop: stop}
			go p.watch(ctx, ip)
		}
	}
}

func (s *server) cut() {
	for conn := range s.conns {
		conn.Close()
	}
}

// ready returns the last known readiness of each server.
func (p *pool) ready() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]bool{}
	for ip, s := range p.servers {
		all[ip] = s.failed == 0
	}
	return all
}

// watch probes a server while the pool has others too; otherwise the result would not matter.
func (p *pool) watch(ctx context.Context, ip string) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := p.check(ctx, ip); ctx.Err() == nil && p.note(ip, err) {
				p.changed()
			}
		}
	}
}

func (p *pool) check(ctx context.Context, ip string) error {
	p.mu.Lock()
	alone := len(p.servers) == 1
	p.mu.Unlock()
	if alone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit) //nolint:forbidigo // a single try: the next server is asked
	defer cancel()
	return p.probe(ctx, address(ip, p.port))
}

// note records the result of a probe, and reports whether it differs from the last.
func (p *pool) note(ip string, err error) (turned bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[ip]
	if s == nil {
		return false
	}
	was := s.failed
	s.count(err)
	anyReady := slices.ContainsFunc(slices.Collect(maps.Values(p.servers)),
		func(s *server) bool { return s.failed == 0 })
	if s.failed >= giveUpAfter && anyReady {
		s.cut()
	}
	return (was == 0) != (s.failed == 0)
}

func (s *server) count(err error) {
	switch {
	case err == nil:
		s.failed = 0
	case errors.Is(err, errShutdown):
		s.failed = 1
	default:
		s.failed++
	}
}

// order returns the order in which servers are tried: ready ones first, beginning with that of
// this host; others at random, so that hosts use different servers.
func (p *pool) order() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ips := slices.Collect(maps.Keys(p.servers))
	rand.Shuffle(len(ips), func(i, j int) { ips[i], ips[j] = ips[j], ips[i] })
	rank := func(ip string) int {
		switch s := p.servers[ip]; {
		case s.failed > 0:
			return 2 + s.failed
		case ip != p.own:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ips, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return ips
}
