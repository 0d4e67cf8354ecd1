package tools

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// dockerCerts are the certificates of the TLS ports of a cluster's nodes, in a
// directory that only this user can read.
type dockerCerts struct{ dir, cluster string }

func certsOf(o session.Options) dockerCerts {
	return dockerCerts{dir: filepath.Join(o.PrivateDir(), "docker"), cluster: o.Name}
}

// authority returns the certificate authority of the cluster's TLS ports. It is
// created once.
func (c dockerCerts) authority() (*pki.Authority, error) {
	cert, errCert := os.ReadFile(filepath.Join(c.dir, "ca.pem"))
	key, errKey := os.ReadFile(filepath.Join(c.dir, "ca-key.pem"))
	if err := errors.Join(errCert, errKey); err == nil {
		return pki.ParseAuthority(pki.Pair{Cert: cert, Key: key})
	}
	ca, err := pki.NewAuthority("docker of "+c.cluster, nil, time.Now())
	if err != nil {
		return nil, err
	}
	return ca, c.write(map[string][]byte{"ca-key.pem": ca.PEM().Key, "ca.pem": ca.PEM().Cert})
}

// client returns the TLS configuration of this user. The certificate is in the
// files that a docker client reads.
func (c dockerCerts) client() (*tls.Config, error) {
	ca, err := c.authority()
	if err != nil {
		return nil, err
	}
	request := pki.Request{CommonName: "client", Client: true}
	pair := pki.Pair{}
	pair.Cert, _ = os.ReadFile(filepath.Join(c.dir, "cert.pem"))
	pair.Key, _ = os.ReadFile(filepath.Join(c.dir, "key.pem"))
	if ca.Stale(pair, request, time.Now()) != "" { // also if pair is empty
		if pair, err = ca.Issue(request, time.Now()); err != nil {
			return nil, err
		}
		if err := c.write(map[string][]byte{"key.pem": pair.Key, "cert.pem": pair.Cert}); err != nil {
			return nil, err
		}
	}
	own, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}, nil
}

func (c dockerCerts) write(files map[string][]byte) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := host.WriteFile(filepath.Join(c.dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
