package registries

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// Private is a real one, behind TLS and a password, on this machine.
type Private struct {
	Dir, Addr string
	CA        []byte
	Pair      tls.Certificate // of the server
	client    *http.Client
	Stop      func() // kills it
}

// Who may use a Private registry.
const (
	PrivateUser     = "carrier"
	PrivatePassword = "not-for-everyone"
)

// NewPrivate starts a registry that asks for a user and a password, at an
// address that the test hosts reach.
func NewPrivate(t *testing.T, ip string) *Private {
	t.Helper()
	r := &Private{Dir: t.TempDir(), Addr: ip + ":5443"}
	r.Certificates(t, ip)
	hash, err := bcrypt.GenerateFromPassword([]byte(PrivatePassword), bcrypt.MinCost)
	must.NoError(t, err)
	r.Write(t, "htpasswd", []byte(PrivateUser+":"+string(hash)+"\n"))
	r.Write(t, "password", []byte(PrivatePassword+"\n"))
	r.Serve(t, "", "htpasswd: {realm: test, path: "+r.Path("htpasswd")+"}")
	return r
}

// Serve starts it with more settings of TLS, and those of who may come in.
func (r *Private) Serve(t *testing.T, tls, auth string) {
	t.Helper()
	r.Write(t, "config.yml", fmt.Appendf(nil, `version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: %[1]s/data}}
http: {addr: "%[2]s", secret: x, tls: {certificate: %[1]s/server.crt, key: %[1]s/server.key%[3]s}}
auth: {%[4]s}
`, r.Dir, r.Addr, tls, auth))
	r.Start(t)
	t.Cleanup(func() { r.Stop() })
}

// Path returns the path of a file of the registry.
func (r *Private) Path(name string) string { return filepath.Join(r.Dir, name) }

// Write writes a file of the registry.
func (r *Private) Write(t *testing.T, name string, data []byte) {
	t.Helper()
	must.NoError(t, os.WriteFile(r.Path(name), data, 0o600))
}

// Start starts the registry and waits until it answers.
func (r *Private) Start(t *testing.T) {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var log bytes.Buffer
	go func() {
		_, err := host.Command{
			Args: []string{"docker-registry", "serve", r.Path("config.yml")}, Stdout: &log, Stderr: &log,
		}.Run(ctx)
		ended <- err
	}()
	r.Stop = func() {
		kill()
		<-ended
		r.Stop = func() {}
	}
	wait.Until(t, 20*time.Second, "the registry", func() error {
		answer, err := r.client.Get("https://" + r.Addr + "/v2/")
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// Get reads what the registry has.
func (r *Private) Get(t *testing.T, path string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.Addr+"/v2/"+path, nil)
	must.NoError(t, err)
	request.SetBasicAuth(PrivateUser, PrivatePassword)
	request.Header.Set("Accept", "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json")
	answer, err := r.client.Do(request)
	must.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %s", path, answer.Status, err, text)
	}
	return text
}

// Certificates creates the certificate of the registry, the authority that signed
// it, and an authority that did not.
func (r *Private) Certificates(t *testing.T, ip string) {
	t.Helper()
	authority, key := certificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "ca of the test"}, IsCA: true, BasicConstraintsValid: true,
	}, nil, nil)
	other, _ := certificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "another ca"}, IsCA: true, BasicConstraintsValid: true,
	}, nil, nil)
	server, serverKey := certificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "registry"}, IPAddresses: []net.IP{net.ParseIP(ip)},
	}, authority, key)
	client, clientKey := certificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "client"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, key)
	r.CA = encoded("CERTIFICATE", authority.Raw)
	r.Write(t, "ca.crt", r.CA)
	r.Write(t, "other.crt", encoded("CERTIFICATE", other.Raw))
	r.Pair = r.writePair(t, "server", server, serverKey)
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{r.writePair(t, "client", client, clientKey)}}
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func (r *Private) writePair(t *testing.T, name string, c *x509.Certificate, key *ecdsa.PrivateKey) tls.Certificate {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	must.NoError(t, err)
	r.Write(t, name+".crt", encoded("CERTIFICATE", c.Raw))
	r.Write(t, name+".key", encoded("EC PRIVATE KEY", der))
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}
}

func certificate(t *testing.T, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate,
	*ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must.NoError(t, err)
	made, err := x509.ParseCertificate(der)
	must.NoError(t, err)
	return made, key
}
