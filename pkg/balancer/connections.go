package balancer

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/inetaf/tcpproxy"
)

// serve listens while a server accepts connections, and closes the port otherwise. Clients then
// get "connection refused" at once. If the pool accepted and closed their connections instead,
// they would retry at once and continuously; a kubelet then starts no pod for ten seconds, not
// even an API server. The pauses between attempts grow with the outage, to a few percent of it.
// Tried and rejected: to let clients wait in the kernel's queue until the first server accepts
// connections. A kubelet whose requests wait starts its API server eight seconds later after a boot.
func (p *pool) serve(ctx context.Context, at string) error {
	var lost time.Time
	for pause := firstRetry; ctx.Err() == nil; pause = min(pause+pause/retryGrowth, maxRetry) {
		if _, conn, err := p.connect(); err == nil {
			conn.Close()
			if !lost.IsZero() {
				p.answers(time.Since(lost))
			}
			if err := p.listen(ctx, at); err != nil {
				return err
			}
			pause, lost = firstRetry, time.Now()
		}
		_ = p.rest(ctx, pause)
	}
	return nil
}

// listen returns when no server accepts connections.
func (p *pool) listen(ctx context.Context, at string) error {
	select {
	case <-p.nobody: // from an earlier listen
	default:
	}
	var proxy tcpproxy.Proxy
	proxy.AddRoute(at, p)
	if err := proxy.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- proxy.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	case <-p.nobody:
	}
	return proxy.Close()
}

// HandleConn forwards a connection to the first server that accepts it.
func (p *pool) HandleConn(client net.Conn) {
	defer client.Close()
	ip, conn, err := p.connect()
	if err != nil {
		select {
		case p.nobody <- struct{}{}:
		default:
		}
		return
	}
	if !p.hold(ip, conn) {
		conn.Close()
		return
	}
	defer p.release(ip, conn)
	(&tcpproxy.DialProxy{
		KeepAlivePeriod: -1, // set by the dialer
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}).HandleConn(client)
}

// connect opens a connection to the first server that accepts it.
func (p *pool) connect() (ip string, conn net.Conn, err error) {
	err = errors.New("no server is known")
	for _, ip := range p.order() {
		if conn, err = dialer.Dial("tcp", address(ip, p.port)); err == nil {
			return ip, conn, nil
		}
	}
	return "", nil, err
}

// hold registers a connection, unless its server has left the pool.
func (p *pool) hold(ip string, conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[ip]
	if s != nil {
		s.conns[conn] = true
	}
	return s != nil
}

func (p *pool) release(ip string, conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.servers[ip]; s != nil {
		delete(s.conns, conn)
	}
}

// dialer makes the kernel detect that the other machine is gone, on idle connections and while
// waiting for an answer. A slow server is not affected, because its kernel acknowledges packets.
var dialer = &net.Dialer{
	Timeout:         dialLimit,
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3},
	Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) {
			err = limitSilence(int(fd))
		}), err)
	},
}
