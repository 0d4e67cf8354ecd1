// Package gate gives workers the few calls to etcd that flannel and the agent make,
// and no others. The etcd of a control plane trusts no certificate of a worker.
//
//	worker: flanneld, agent ──its own certificate──▶ :2382 the gate, in the agent of a control plane
//	                                                    │ reads each request, passes it on or refuses it
//	                                                    ▼
//	                        etcd :2379, as the worker's user, with a certificate of the gate
//
// Two mechanisms therefore confine a worker: the gate, and the rights of its user in etcd,
// of which several releases of etcd enforced less than they should
// (https://github.com/etcd-io/etcd/security/advisories). A second etcd for flannel would be
// a third process on each control plane, with members, backups and a quorum of its own.
package gate

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link/clients"
)

// Port is the port of the gate on every control plane.
const Port = 2382

const (
	// quietConnection is the time without a request after which a connection ends.
	quietConnection = 10 * time.Minute
	// pingAfter and pingLimit end connections of hosts that lost power.
	pingAfter = 30 * time.Second
	pingLimit = 15 * time.Second
	// requestLimit is larger than any request of flanneld, in bytes.
	requestLimit = 16 << 10
)

// hosts are the limits of the connections. flanneld, the agent and a command of a worker
// have a few each.
var hosts = clients.Limits{Silence: pingLimit, Idle: quietConnection, Header: requestLimit, Connections: 32}

// Gate is the gate of this control plane.
type Gate struct {
	IP string // of this host, where workers reach it
	// Serving returns the TLS configuration for workers: the certificate of the gate, and
	// the authority of the workers' certificates.
	Serving func() (*tls.Config, error)
	// As returns the TLS configuration with which etcd accepts the gate as a user.
	As   func(user string) (*tls.Config, error)
	Etcd string // address of the etcd of this host, with its port
	// Healthy returns nil if that etcd is ready.
	Healthy func(context.Context) error
	// Host returns the host of an etcd user, or "" if the user is not that of a worker.
	Host func(user string) string

	Readable []string // prefixes that workers may read and watch
	Leases   string   // prefix of the keys that workers may write; a user may write one of them
	// Accept returns an error unless a host may lease a subnet with this value.
	Accept func(ctx context.Context, host, key string, value []byte) error
}

// Serve passes calls until ctx ends.
func (g Gate) Serve(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(g.IP, strconv.Itoa(Port)))
	if err != nil {
		return err
	}
	calls := &server{Gate: g, hosts: map[string]*access{}}
	defer calls.close()
	server := hosts.Server(calls.handler())
	server.TLSConfig = &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		// Per connection, because certificates are renewed.
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return g.serving() },
	}
	server.HTTP2 = &http.HTTP2Config{
		SendPingTimeout: pingAfter, PingTimeout: pingLimit, WriteByteTimeout: pingLimit,
		MaxConcurrentStreams: mostCalls,
	}
	server.ErrorLog = log.New(io.Discard, "", 0) // the handshakes of strangers
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err = server.ServeTLS(listener, "", "")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

var protocols = []string{"h2", "http/1.1"}

func (g Gate) serving() (*tls.Config, error) {
	config, err := g.Serving()
	if err != nil {
		return nil, err
	}
	config.ClientAuth, config.NextProtos = tls.RequireAndVerifyClientCert, protocols
	return config, nil
}

// server is a running gate.
type server struct {
	Gate
	mu    sync.Mutex
	hosts map[string]*access
}

// handler passes gRPC calls, and answers the probes of balancers.
func (s *server) handler() http.Handler {
	calls := grpc.NewServer(grpc.ForceServerCodecV2(frames{}), grpc.UnknownServiceHandler(s.pass),
		grpc.MaxRecvMsgSize(requestLimit))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
			calls.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.URL.Path == "/health":
			s.health(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// health answers whether etcd is ready.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	if err := s.Healthy(r.Context()); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
