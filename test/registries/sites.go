package registries

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// Who may read the registry.
const (
	User, Password = "puller", "secret"
	htpasswd       = "puller:$2y$05$OWJTFxv7JHoEK.dkvd5B/.wQOq0MJHG2vPddPkRe.3Z/QCSYxP9W.\n"
)

// StartRegistry runs Debian's docker-registry and returns its address.
func StartRegistry(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	address := listener.Addr().String()
	must.NoError(t, listener.Close())
	config := fmt.Sprintf(`version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %s/data}}
http: {addr: "%s", relativeurls: true}
auth: {htpasswd: {realm: test, path: %s/htpasswd}}
`, dir, address, dir)
	must.NoError(t, os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o644))
	must.NoError(t, os.WriteFile(filepath.Join(dir, "htpasswd"), []byte(htpasswd), 0o644))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = host.Command{Args: []string{"docker-registry", "serve", filepath.Join(dir, "config.yml")}}.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	wait.Until(t, time.Minute, "docker-registry answers", func() error {
		resp, err := http.Get("http://" + address + "/v2/")
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	return address
}

// Sites is a server with a certificate of its own authority before the registry
// and the files, which behaves as servers far away do.
type Sites struct {
	*httptest.Server
	CAFile string

	mu       sync.Mutex
	asked    []string         // "GET /path range"
	sent     map[string]int64 // bytes of bodies, by path
	refuse   map[string]int   // how often a path is still answered with 429
	cut      map[string]int64 // after how many bytes a path breaks off once
	held     string           // a path whose answer stops in the middle ...
	Holding  chan struct{}    // ... which is told here
	released chan struct{}
	release  func()
}

// StartSites starts the server.
func StartSites(t *testing.T, registry, files string) *Sites {
	t.Helper()
	s := newSites()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: registry})
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	mux := http.NewServeMux()
	mux.Handle("/v2/", proxy)
	mux.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir(files))))
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(mux,
			w, r)
	}))
	s.certify(t)
	s.start(t)
	return s
}

func newSites() *Sites {
	s := &Sites{
		sent: map[string]int64{}, refuse: map[string]int{}, cut: map[string]int64{},
		Holding: make(chan struct{}, 1), released: make(chan struct{}),
	}
	s.release = sync.OnceFunc(func() { close(s.released) })
	return s
}

func (s *Sites) start(t *testing.T) {
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // refusing us is part of the test
	s.StartTLS()
	t.Cleanup(func() { s.release(); s.CloseClientConnections(); s.Close() })
}

// certify makes an authority and a certificate for 127.0.0.1 and names by it.
func (s *Sites) certify(t *testing.T, names ...string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority of our own"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:              names}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	must.NoError(t, err)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	must.NoError(t, os.WriteFile(s.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
}

// Host returns the address of the server.
func (s *Sites) Host() string { return strings.TrimPrefix(s.URL, "https://") }

func (s *Sites) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
	refuse := s.refuse[r.URL.Path] > 0
	if refuse {
		s.refuse[r.URL.Path]--
	}
	body := &faulty{ResponseWriter: w, sites: s, path: r.URL.Path, left: -1, hold: s.held == r.URL.Path}
	if n, ok := s.cut[r.URL.Path]; ok {
		body.left = n
		delete(s.cut, r.URL.Path)
	}
	s.mu.Unlock()
	if refuse {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	next.ServeHTTP(body, r)
}

// faulty is an answer that may break off or stop in the middle.
type faulty struct {
	http.ResponseWriter
	sites *Sites
	path  string
	left  int64 // bytes until it breaks off; below 0: never
	hold  bool
	sent  int64
}

// holdAfter is where an answer that is held stops.
const holdAfter = 1 << 20

func (f *faulty) Write(p []byte) (int, error) {
	if f.left >= 0 && int64(len(p)) > f.left {
		_, _ = f.ResponseWriter.Write(p[:f.left])
		panic(http.ErrAbortHandler)
	}
	if f.left >= 0 {
		f.left -= int64(len(p))
	}
	n, err := f.ResponseWriter.Write(p)
	f.sent += int64(n)
	f.sites.mu.Lock()
	f.sites.sent[f.path] += int64(n)
	f.sites.mu.Unlock()
	if f.hold && f.sent > holdAfter {
		f.hold = false
		f.ResponseWriter.(http.Flusher).Flush()
		f.sites.Holding <- struct{}{}
		<-f.sites.released
	}
	return n, err
}

func (f *faulty) Flush() { f.ResponseWriter.(http.Flusher).Flush() }

// Hold has the next answer for a path stop in the middle.
func (s *Sites) Hold(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = path
}

// Refuse refuses the next requests for a path.
func (s *Sites) Refuse(path string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[path] = times
}

// Cut breaks the next answer for a path off after so many bytes.
func (s *Sites) Cut(path string, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut[path] = after
}

// Asked returns all requests since the last call of Forget or GoOn: "GET /path range".
func (s *Sites) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Forget forgets all requests.
func (s *Sites) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = nil
}

// GoOn ends the answer that is held, holds no other, and forgets what was asked.
func (s *Sites) GoOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.asked = "", nil
	s.release()
}

// Requests returns those for a path since the last call of goOn.
func (s *Sites) Requests(path string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.asked {
		if words := strings.Fields(line); words[1] == path {
			all = append(all, line)
		}
	}
	return all
}

// Login writes what `docker login` would, into a directory of its own.
func Login(t *testing.T, address string) (dockerConfig string) {
	t.Helper()
	dir := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte(User + ":" + Password))
	must.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"),
		[]byte(`{"auths":{"`+address+`":{"auth":"`+auth+`"}}}`), 0o600))
	return dir
}
