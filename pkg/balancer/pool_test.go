package balancer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/inetaf/tcpproxy"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// backend is a server on an address of this machine that says which it is, and
// then echoes.
type backend struct {
	net.Listener
	ip   string
	sick atomic.Bool // what its probe finds
	ends atomic.Bool // it shuts down

	probed atomic.Int32
	conns  chan net.Conn
}

func listen(t *testing.T, ip string, port int) *backend {
	t.Helper()
	l, err := net.Listen("tcp", address(ip, port))
	must.NoError(t, err)
	b := &backend{Listener: l, ip: ip, conns: make(chan net.Conn, 100)}
	t.Cleanup(b.die)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.conns <- c
			go func() { fmt.Fprintln(c, ip); _, _ = io.Copy(c, c) }()
		}
	}()
	return b
}

// die is the end of a process: the kernel ends its connections.
func (b *backend) die() {
	b.Close()
	for {
		select {
		case c := <-b.conns:
			c.Close()
		default:
			return
		}
	}
}

// balanced is a pool over backends, the first of which is on the own host, and
// the address that leads to it.
func balanced(t *testing.T, n int) (*pool, []*backend, string) {
	t.Helper()
	all := []*backend{listen(t, "127.0.0.2", 0)}
	port := all[0].Addr().(*net.TCPAddr).Port
	for i := 1; i < n; i++ {
		all = append(all, listen(t, "127.0.0."+strconv.Itoa(2+i), port))
	}
	p := newPool("127.0.0.2", port, func(_ context.Context, address string) error {
		for _, b := range all {
			if b.Addr().String() != address {
				continue
			}
			b.probed.Add(1)
			if b.sick.Load() {
				return errors.New("sick")
			}
			if b.ends.Load() {
				return errShutdown
			}
		}
		return nil
	})
	p.every = time.Millisecond
	var ips []string
	for _, b := range all {
		ips = append(ips, b.ip)
	}
	p.use(t.Context(), ips)
	var proxy tcpproxy.Proxy
	at := make(chan string, 1)
	proxy.ListenFunc = func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if err == nil {
			at <- l.Addr().String()
		}
		return l, err
	}
	proxy.AddRoute("127.0.0.1:0", p)
	must.NoError(t, proxy.Start())
	t.Cleanup(func() { proxy.Close() })
	return p, all, <-at
}

// connect returns a connection and who answers on it.
func connect(t *testing.T, at string) (net.Conn, string) {
	t.Helper()
	c, err := net.Dial("tcp", at)
	must.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return c, ""
	}
	return c, line[:len(line)-1]
}

func TestOwnServerIsPreferred(t *testing.T) {
	_, _, at := balanced(t, 3)
	for range 20 {
		if _, who := connect(t, at); who != "127.0.0.2" {
			t.Errorf("led to %s", who)
		}
	}
}

func TestServerThatDiesIsReplacedAtOnce(t *testing.T) {
	_, all, at := balanced(t, 2)
	held, who := connect(t, at)
	if who != all[0].ip {
		t.Fatalf("led to %s", who)
	}
	all[0].die()
	if _, err := held.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlived its server")
	}
	if _, who := connect(t, at); who != all[1].ip {
		t.Errorf("then led to %q", who)
	}
}

func TestServerThatIsNotReadyIsAvoidedAndThenLeft(t *testing.T) {
	p, all, at := balanced(t, 2)
	held, _ := connect(t, at)
	all[0].sick.Store(true)
	must.Until(t, "avoid a server that is not ready", func() bool { return !p.ready()[all[0].ip] })
	if _, who := connect(t, at); who != all[1].ip {
		t.Errorf("led to %q", who)
	}
	if _, err := held.Read(make([]byte, 1)); err == nil {
		t.Error("a connection to it was kept")
	}
	all[0].sick.Store(false)
	must.Until(t, "turn to it again", func() bool { _, who := connect(t, at); return who == all[0].ip })
}

func TestServerThatShutsDownIsAvoidedAndKeepsItsConnections(t *testing.T) {
	p, all, at := balanced(t, 2)
	held, _ := connect(t, at)
	all[0].ends.Store(true)
	must.Until(t, "avoid a server that shuts down", func() bool { return !p.ready()[all[0].ip] })
	if _, who := connect(t, at); who != all[1].ip {
		t.Errorf("led to %q", who)
	}
	was := all[0].probed.Load()
	must.Until(t, "probe it often enough", func() bool { return all[0].probed.Load() > was+4*giveUpAfter })
	fmt.Fprintln(held, "still here")
	if line, err := bufio.NewReader(held).ReadString('\n'); err != nil {
		t.Errorf("its connection ended: %q, %v", line, err)
	}
	all[0].sick.Store(true) // it hangs
	if _, err := held.Read(make([]byte, 1)); err == nil {
		t.Error("a connection to it was kept")
	}
}

func TestWithoutAnyReadyServerOneIsTriedAllTheSame(t *testing.T) {
	p, all, at := balanced(t, 2)
	for _, b := range all {
		b.sick.Store(true)
	}
	must.Until(t, "find both not ready", func() bool { r := p.ready(); return !r[all[0].ip] && !r[all[1].ip] })
	if _, who := connect(t, at); who == "" {
		t.Error("led to nobody")
	}
}

func TestWhoComesWhileNoServerIsThereIsRefused(t *testing.T) {
	p, all, _ := balanced(t, 1)
	all[0].die()
	at, ended := address("127.0.0.1", freePair(t)), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- p.serve(ctx, at) }()
	for range 2 {
		if _, err := net.Dial("tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("without a server: %v", err)
		}
		again := listen(t, all[0].ip, p.port)
		must.Until(t, "listen once there is a server",
			func() bool { c, err := net.Dial("tcp", at); return err == nil && c.Close() == nil })
		if _, who := connect(t, at); who != again.ip {
			t.Errorf("led to %q", who)
		}
		again.die()
		must.Until(t, "refuse again",
			func() bool { c, err := net.Dial("tcp", at); return err != nil || c.Close() != nil })
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServerThatLeavesTheListIsLeft(t *testing.T) {
	p, all, at := balanced(t, 2)
	held, _ := connect(t, at)
	p.use(t.Context(), []string{all[1].ip})
	if _, err := held.Read(make([]byte, 1)); err == nil {
		t.Error("a connection to it was kept")
	}
	if _, who := connect(t, at); who != all[1].ip {
		t.Errorf("led to %q", who)
	}
}

func TestAloneIsNeverProbed(t *testing.T) {
	p, all, at := balanced(t, 1)
	all[0].sick.Store(true)
	probed := atomic.Int32{}
	p.probe = func(context.Context, string) error { probed.Add(1); return nil }
	for range 5 {
		if _, who := connect(t, at); who != all[0].ip {
			t.Errorf("led to %q", who)
		}
	}
	if n := probed.Load(); n > 0 {
		t.Errorf("asked %d times", n)
	}
}
