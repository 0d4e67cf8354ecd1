package balancer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func testBalancer(t *testing.T) Balancer {
	return Balancer{
		Settings: Settings{
			Own: "10.0.0.1", Port: 6440, APIPort: 6443, ClusterCA: "/etc/kubernetes/pki/ca.crt",
			EtcdCA: "/etc/kubernetes/pki/etcd/ca.crt",
			Cert:   "/etc/kubernetes/pki/etcd/flannel.crt", Key: "/etc/kubernetes/pki/etcd/flannel.key",
		},
		Files: host.Files{Root: t.TempDir()}, Seeds: []string{"10.0.0.9"},
	}
}

// A restart of the agent would close the connections of the host.
func TestNewCertificatesDoNotRestartTheAgent(t *testing.T) {
	b := testBalancer(t)
	put := func() (diff []string) {
		tree, err := b.Records()
		must.NoError(t, err)
		diff, err = b.Files.Missing(tree)
		must.NoError(t, errors.Join(err, b.Files.Put(tree)))
		return diff
	}
	if diff := put(); len(diff) != 2 {
		t.Errorf("a fresh host: %v", diff)
	}
	if s, err := ReadSettings(b.Files); err != nil || s != b.Settings {
		t.Errorf("read %v, %v", s, err)
	}
	if diff := put(); len(diff) > 0 {
		t.Errorf("written, and still to be written: %v", diff)
	}
	for _, path := range []string{b.Cert, b.EtcdCA, b.ClusterCA} {
		must.NoError(t, b.Files.Write(path, []byte("renewed"), 0o600))
		if diff := put(); len(diff) > 0 {
			t.Errorf("a new %s restarts the agent: %v", path, diff)
		}
	}
}

func TestSeedsHoldUntilAControlPlaneHasTold(t *testing.T) {
	b := testBalancer(t)
	// seed writes the initial state, if it must be written.
	seed := func() (stale bool, addresses []string) {
		tree, err := b.known()
		must.NoError(t, errors.Join(err, b.Files.Put(tree)))
		now, err := ReadBackends(b.Files)
		must.NoError(t, err)
		return len(tree) > 0, now.Addresses()
	}
	if stale, addresses := seed(); !stale || !slices.Equal(addresses, b.Seeds) {
		t.Fatalf("a fresh host: %v, %t", addresses, stale)
	}
	if stale, _ := seed(); stale {
		t.Error("written, and still to be written")
	}
	b.Seeds = []string{"10.0.0.8"} // another one was named, as the first did not answer
	if stale, addresses := seed(); !stale || !slices.Equal(addresses, []string{"10.0.0.9", "10.0.0.8"}) {
		t.Errorf("another seed: %v, %t", addresses, stale)
	}
	told := Backends{ControlPlanes: []Backend{{IP: "10.0.0.2"}, {IP: "10.0.0.3", Joining: true}}, Known: true}
	must.NoError(t, stateRecord.Write(b.Files, told))
	if stale, addresses := seed(); stale || !slices.Equal(addresses, []string{"10.0.0.2"}) {
		t.Errorf("after it was told: %v, %t", addresses, stale)
	}
}

func TestAWorkerThatIsMovedForgetsTheControlPlanesBefore(t *testing.T) {
	b := testBalancer(t)
	b.First, b.Seeds = "10.0.0.1", []string{"10.0.0.1"}
	records := func() (addresses []string) {
		tree, err := b.Records()
		must.NoError(t, errors.Join(err, b.Files.Put(tree)))
		now, err := ReadBackends(b.Files)
		must.NoError(t, err)
		return now.Addresses()
	}
	records()
	told := Backends{ControlPlanes: []Backend{{IP: "10.0.0.2"}}, Known: true}
	must.NoError(t, stateRecord.Write(b.Files, told))
	if got := records(); !slices.Equal(got, []string{"10.0.0.2"}) {
		t.Errorf("the same control plane is named: %v", got)
	}
	b.First, b.Seeds = "10.0.0.7", []string{"10.0.0.7"}
	for range 2 {
		if got := records(); !slices.Equal(got, []string{"10.0.0.7"}) {
			t.Errorf("another control plane is named: %v", got)
		}
	}
	must.NoError(t, stateRecord.Write(b.Files, told))
	if got := records(); !slices.Equal(got, []string{"10.0.0.2"}) {
		t.Errorf("it has told the list: %v", got)
	}
}

// authority has the balancer trust a server, and show its certificate.
func authority(t *testing.T, b *Balancer, of *httptest.Server) {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.Certificate().Raw})
	key, err := x509.MarshalPKCS8PrivateKey(of.TLS.Certificates[0].PrivateKey)
	must.NoError(t, err)
	for path, data := range map[string][]byte{
		b.ClusterCA: ca, b.EtcdCA: ca, b.Cert: ca,
		b.Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		must.NoError(t, b.Files.Write(path, data, 0o600))
	}
}

func TestServeFollowsWhatItIsTold(t *testing.T) {
	b := testBalancer(t)
	b.Own = "127.0.0.1"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	t.Cleanup(server.Close)
	authority(t, &b, server)
	b.APIPort = server.Listener.Addr().(*net.TCPAddr).Port
	b.Port = freePair(t)
	must.NoError(t, stateRecord.Write(b.Files, Backends{ControlPlanes: []Backend{{IP: "127.0.0.7"}}}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, b.Files, b.Settings, func(ctx context.Context, report func([]Backend)) error {
			report(nil) // a cluster that is being made
			report([]Backend{{IP: "127.0.0.1"}, {IP: "127.0.0.8", Joining: true}})
			<-ctx.Done()
			return ctx.Err()
		}, func(time.Duration) {})
	}()
	client := server.Client()
	client.Transport.(*http.Transport).TLSClientConfig.ServerName = "127.0.0.1"
	must.Until(t, "an answer through the balancer", func() bool {
		answer, err := client.Get("https://" + b.Address() + "/version")
		if err != nil {
			return false
		}
		return errors.Join(answer.Body.Close()) == nil && answer.StatusCode == http.StatusOK
	})
	must.Until(t, "the state that was told", func() bool {
		state, err := ReadBackends(b.Files)
		return err == nil && state.Known && slices.Equal(state.Addresses(), []string{"127.0.0.1"}) &&
			len(state.ControlPlanes) == 2
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// freePair finds two ports in a row.
func freePair(t *testing.T) int {
	t.Helper()
	for {
		one, err := net.Listen("tcp", "127.0.0.1:0")
		must.NoError(t, err)
		port := one.Addr().(*net.TCPAddr).Port
		two, err := net.Listen("tcp", address("127.0.0.1", port+1))
		one.Close()
		if err == nil {
			two.Close()
			return port
		}
	}
}

func TestProbeAsksTheServerItself(t *testing.T) {
	var ready atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	probe := Probe(func() (*tls.Config, error) {
		return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
	}, "/readyz")
	at := server.Listener.Addr().String()
	if probe(t.Context(), at) == nil {
		t.Error("a server that says no is taken for ready")
	}
	ready.Store(true)
	if err := probe(t.Context(), at); err != nil {
		t.Error(err)
	}
	roots = x509.NewCertPool()
	server.CloseClientConnections()
	if probe(t.Context(), at) == nil {
		t.Error("a server with a certificate of an authority that was replaced is taken for ready")
	}
}

// The answer is of the code that API servers run.
func TestProbeKnowsAnAPIServerThatShutsDown(t *testing.T) {
	mux, ends := http.NewServeMux(), make(chan struct{})
	healthz.InstallReadyzHandler(mux, healthz.PingHealthz, healthz.NewShutdownHealthz(ends))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	probe := Probe(func() (*tls.Config, error) {
		return server.Client().Transport.(*http.Transport).TLSClientConfig, nil
	}, "/readyz")
	at := server.Listener.Addr().String()
	if err := probe(t.Context(), at); err != nil {
		t.Error(err)
	}
	close(ends)
	if err := probe(t.Context(), at); !errors.Is(err, errShutdown) {
		t.Errorf("it shuts down: %v", err)
	}
}

func TestADamagedRecordIsWrittenAgain(t *testing.T) {
	for _, text := range []string{"", "{garbage", "\x00\x00"} {
		b := testBalancer(t)
		must.NoError(t, b.Files.Write(stateRecord.Path, []byte(text), 0o600))
		known := b.Known()
		if diff, err := known.Check(t.Context()); err != nil || len(diff) != 1 {
			t.Errorf("%q: %v, %v", text, diff, err)
		}
		must.NoError(t, known.Apply(t.Context()))
		if state, err := ReadBackends(b.Files); err != nil || !slices.Equal(state.Addresses(), b.Seeds) {
			t.Errorf("%q: %v, %v", text, state, err)
		}
	}
}

func TestStateOfAHostThatHasNone(t *testing.T) {
	if _, err := ReadBackends(host.Files{Root: t.TempDir()}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestFrontFindsControlPlanesByTheirName(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	t.Cleanup(server.Close)
	f := External{Name: "localhost", Port: server.Listener.Addr().(*net.TCPAddr).Port}
	servers := f.servers()
	if err := servers.probe(t.Context(), server.Listener.Addr().String()); err != nil {
		t.Errorf("it knows no authority, and needs none: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go f.follow(ctx, servers)
	must.Until(t, "a connection to what the name leads to", func() bool {
		ip, conn, err := servers.connect()
		if err != nil {
			return false
		}
		return conn.Close() == nil && ip == "127.0.0.1"
	})
}
