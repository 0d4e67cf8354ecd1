package dockertools

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed" // docker-tls.sh
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const dockerPort = 2376

const dockerTLSDir = "/etc/kube-bootstrap-docker-tls"

// dockerPortScript makes the node's Docker reachable on its TLS port, also after
// a reboot, and closes the port again. Docker itself is not changed: a proxy
// forwards the port to Docker's socket.
//
//go:embed scripts/docker-tls.sh
var dockerPortScript string

// DockerEnv is how a docker client reaches the engine of a node.
type DockerEnv struct {
	Node     string `json:"node"`
	Host     string `json:"host"`     // DOCKER_HOST
	CertPath string `json:"certPath"` // DOCKER_CERT_PATH
	Engine   string `json:"engine"`   // address of the engine that runs the nodes
}

// portScope is the scope of the commands that open and close the port.
var portScope = session.Requirements{Needs: session.Nodes, Lock: session.ClusterLock}

// OpenDockerEnv gives this user's docker client access to the Docker of a node,
// with certificates that only this cluster accepts.
func OpenDockerEnv(ctx context.Context, options session.Selection, name string) (env DockerEnv, err error) {
	err = onRunning(ctx, options, portScope, name, func(c containers.Cluster, n topology.ClusterNode) error {
		if c.Engine.Remote() {
			return &step.Problem{Name: "engine-remote",
				Text:   "this machine has no route to the nodes of a remote engine",
				Remedy: "run this on the engine's machine"}
		}
		p := dockerTLS{c.Session, n}
		env = DockerEnv{Node: n.Name, Host: "tcp://" + p.address(), CertPath: p.certs().dir(), Engine: c.Engine.Address}
		return p.open(ctx)
	})
	return env, err
}

// dockerTLS is the TLS port of a node's Docker.
type dockerTLS struct {
	session *session.Session
	node    topology.ClusterNode
}

func (p dockerTLS) certs() dockerCerts { return dockerCerts{p.session.Selection} }

// open opens the port with a new certificate, unless it answers already.
func (p dockerTLS) open(ctx context.Context) error {
	client, err := p.certs().client()
	if err != nil {
		return err
	}
	answers := func(ctx context.Context) error { return p.answers(ctx, client) }
	if answers(ctx) == nil {
		return nil
	}
	if err := p.reachable(ctx); err != nil {
		return err
	}
	if err := p.putCertificates(ctx); err != nil {
		return err
	}
	if err := p.run(ctx, "open"); err != nil {
		return err
	}
	if err := step.Until(ctx, answers, nil); err != nil {
		return fmt.Errorf("connect to Docker of %s at %s: %w", p.node.Name, p.address(), err)
	}
	return nil
}

func (p dockerTLS) putCertificates(ctx context.Context) error {
	ca, err := p.certs().authority()
	if err != nil {
		return err
	}
	pair, err := ca.Issue(pki.CertificateRequest{CommonName: p.node.Name,
		Hosts: []string{p.node.Name, p.node.Addr.String()}}, time.Now())
	if err != nil {
		return err
	}
	for path, data := range map[string][]byte{"server.pem": append(pair.Cert, pair.Key...), "ca.pem": ca.PEM().Cert} {
		if err := p.session.Node(p.node.Name).Put(ctx, dockerTLSDir+"/"+path, 0o600,
			strings.NewReader(string(data))); err != nil {
			return err
		}
	}
	return nil
}

// run runs dockerPortScript on the node; do is "open" or "close".
func (p dockerTLS) run(ctx context.Context, do string) error {
	if err := access.Run(ctx, p.session.Node(p.node.Name),
		access.Script(dockerPortScript, do, dockerTLSDir, strconv.Itoa(dockerPort))...); err != nil {
		return fmt.Errorf("%s the TLS port of %s: %w", do, p.node.Name, err)
	}
	return nil
}

// CloseDockerEnv closes the port of a node that OpenDockerEnv opened, for all
// clients. Without a name, it closes the port to which env leads, on a node of
// any cluster of this user.
func CloseDockerEnv(ctx context.Context, options session.Selection, name string, env DockerEnv) error {
	if name != "" {
		return session.OnRunning(ctx, options, portScope, name, func(s *session.Session, n topology.ClusterNode) error {
			return dockerTLS{s, n}.run(ctx, "close")
		})
	}
	options, err := options.WithDefaults()
	if err != nil {
		return err
	}
	options.Name = filepath.Base(filepath.Dir(env.CertPath))
	if env.CertPath != (dockerCerts{options}).dir() {
		return nil // env leads to no node of a cluster
	}
	return session.Do(ctx, options, portScope, func(s *session.Session, state topology.State) error {
		for _, n := range state.Running() {
			if p := (dockerTLS{s, n.ClusterNode}); env.Host == "tcp://"+p.address() {
				return p.run(ctx, "close")
			}
		}
		return nil
	})
}

func (p dockerTLS) address() string {
	return net.JoinHostPort(p.node.Addr.String(), strconv.Itoa(dockerPort))
}

// reachable tries to connect to the node's address and accepts "connection
// refused" too: only an address without a route never answers.
func (p dockerTLS) reachable(ctx context.Context) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.address())
	if err == nil {
		return conn.Close()
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return &step.Problem{
		Name: "node-unreachable", Text: fmt.Sprintf("connect to %s, where Docker of node %s is to answer: %v",
			p.address(), p.node.Name, err),
		Remedy: "this machine needs a route to the cluster's network, and no firewall in between; `kube-bootstrap " +
			"node ssh` needs neither",
	}
}

// answers gets an answer of Docker from the port.
func (p dockerTLS) answers(ctx context.Context, client *tls.Config) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	client = client.Clone()
	client.ServerName = p.node.Name
	// In TLS 1.3, a server rejects the client's certificate only after the handshake.
	ping, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.address()+"/_ping", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{TLSClientConfig: client, DisableKeepAlives: true}).RoundTrip(ping)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// dockerCerts are the certificates of the TLS ports of a cluster's nodes, in a
// directory that only this user can read.
type dockerCerts struct{ session.Selection }

func (c dockerCerts) dir() string { return filepath.Join(c.PrivateDir(), "docker") }

// authority returns the certificate authority of the TLS ports, which is created once.
func (c dockerCerts) authority() (*pki.Authority, error) {
	cert, errCert := os.ReadFile(filepath.Join(c.dir(), "ca.pem"))
	key, errKey := os.ReadFile(filepath.Join(c.dir(), "ca-key.pem"))
	if err := errors.Join(errCert, errKey); err == nil {
		return pki.ParseAuthority(pki.Pair{Cert: cert, Key: key})
	}
	ca, err := pki.NewAuthority("docker of "+c.Name, nil, time.Now())
	if err != nil {
		return nil, err
	}
	return ca, c.write(map[string][]byte{"ca-key.pem": ca.PEM().Key, "ca.pem": ca.PEM().Cert})
}

// client returns the TLS configuration of this user. A docker client reads the same files.
func (c dockerCerts) client() (*tls.Config, error) {
	ca, err := c.authority()
	if err != nil {
		return nil, err
	}
	request := pki.CertificateRequest{CommonName: "client", Client: true}
	pair := pki.Pair{}
	pair.Cert, _ = os.ReadFile(filepath.Join(c.dir(), "cert.pem"))
	pair.Key, _ = os.ReadFile(filepath.Join(c.dir(), "key.pem"))
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
	for name, data := range files {
		if _, err := c.WritePrivate(filepath.Join("docker", name), data); err != nil {
			return err
		}
	}
	return nil
}
