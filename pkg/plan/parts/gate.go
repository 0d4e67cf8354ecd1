package parts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/gate"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// clientLife is how long a certificate is valid that is made for one connection, in memory.
const clientLife = 24 * time.Hour

// Gate returns the gate by which workers use the etcd of this control plane.
func Gate(own etcd.Client) gate.Gate {
	address, probe := etcd.ClientAddress(own.IP), balancer.Probe(asOwn(own), "/health")
	return gate.Gate{
		IP: own.IP, Etcd: address, Host: etcd.WorkerOf, Readable: etcd.Readable(), Leases: flannel.LeasesPrefix,
		Serving: func() (*tls.Config, error) { return serving(own.Credentials.Files) },
		As:      func(user string) (*tls.Config, error) { return asUser(own.Credentials.Files, user) },
		Healthy: func(ctx context.Context) error { return probe(ctx, address) },
		Accept: func(ctx context.Context, name, key string, value []byte) error {
			return own.Do(ctx, func(client *clientv3.Client) error {
				planes, err := controlPlaneAddresses(ctx, client)
				if err != nil {
					return err
				}
				return flannel.Accept(ctx, client, name, key, value, planes)
			})
		},
	}
}

// asOwn returns the TLS configuration with which this host is a client of etcd.
func asOwn(own etcd.Client) func() (*tls.Config, error) {
	root := own.Credentials
	return func() (*tls.Config, error) { return host.ClientTLS(root.Files, root.CA, root.Cert, root.Key) }
}

// serving returns the TLS configuration of the gate: it has the certificate of etcd,
// and trusts the authority of the certificates of workers.
func serving(files host.Files) (*tls.Config, error) {
	authority, err := files.Read(controlplane.EtcdCA + ".crt")
	if err != nil {
		return nil, err
	}
	cert, key := files.Path(controlplane.EtcdServer+".crt"), files.Path(controlplane.EtcdServer+".key")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: x509.NewCertPool(),
	}
	if !config.ClientCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s.crt", controlplane.EtcdCA)
	}
	return config, nil
}

// asUser returns the TLS configuration with which the gate is a user of etcd.
func asUser(files host.Files, user string) (*tls.Config, error) {
	config, err := host.ClientTLS(files, controlplane.EtcdCA+".crt", "", "")
	if err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return issueClient(files, controlplane.EtcdPeerCA, user)
	}
	return config, nil
}

// issueClient makes the certificate of a client of etcd, which never is in a file.
func issueClient(files host.Files, authority, user string) (*tls.Certificate, error) {
	signer, err := controlplane.Signer(files, authority)
	if err != nil {
		return nil, err
	}
	made, err := signer.Issue(pki.CertificateRequest{CommonName: user, Client: true, Life: clientLife}, time.Now())
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(made.Cert, made.Key)
	return &pair, err
}
