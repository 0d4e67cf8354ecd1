package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed" // the script of the proxy
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// dockerPort is where a node's Docker listens for those with a certificate.
const dockerPort = 2376

const dockerTLSDir = "/etc/kube-bootstrap-docker-tls"

// dockerPortScript makes the node's Docker reachable on its TLS port, also after
// a reboot, and closes the port again. Docker itself is not changed: a proxy
// forwards the port to Docker's socket.
//
//go:embed rootfs/docker-tls.sh
var dockerPortScript string

// DockerEnv is how a docker client reaches the engine of a node.
type DockerEnv struct {
	Node     string `json:"node"`
	Host     string `json:"host"`     // DOCKER_HOST
	CertPath string `json:"certPath"` // DOCKER_CERT_PATH
	Engine   string `json:"engine"`   // that runs the nodes, for us to find again
}

// OpenDockerEnv lets this user's docker client speak to the engine of a node,
// with certificates that this cluster alone knows.
func OpenDockerEnv(ctx context.Context, options Options, name string) (env DockerEnv, err error) {
	err = onNodes(ctx, options, nil, func(f *fleet, found []docker.FoundMachine) error {
		m, err := f.pickRunning(name, found)
		if err != nil {
			return err
		}
		if f.docker.Remote() {
			return &step.Problem{Name: "engine-remote", Text: "the nodes of a remote engine have no address that leads there from here",
				Remedy: "run this on the engine's machine"}
		}
		env = DockerEnv{Node: m.name, Host: "tcp://" + dockerAddress(m), CertPath: f.certDir(), Engine: f.docker.Address}
		return f.serveDocker(ctx, m)
	})
	return env, err
}

// privateDir holds what only this user may read of a cluster; the hosts never
// see it, unlike sharedDir.
func (f *fleet) privateDir() string { return filepath.Join(f.CacheDir, "private", f.Name) }

func (f *fleet) certDir() string { return filepath.Join(f.privateDir(), "docker") }

func (f *fleet) serveDocker(ctx context.Context, m member) error {
	client, err := f.clientPair()
	if err != nil {
		return err
	}
	answers := func(ctx context.Context) error { return dockerAnswers(ctx, m, client) }
	if answers(ctx) == nil {
		return nil
	}
	if err := reachable(ctx, m); err != nil {
		return err
	}
	ca, err := f.dockerAuthority()
	if err != nil {
		return err
	}
	pair, err := ca.Issue(pki.Request{CommonName: m.name, Hosts: []string{m.name, m.addr.String()}}, time.Now())
	if err != nil {
		return err
	}
	node := f.node(m)
	for path, data := range map[string][]byte{"server.pem": append(pair.Cert, pair.Key...), "ca.pem": ca.PEM().Cert} {
		if err := node.Put(ctx, dockerTLSDir+"/"+path, 0o600, strings.NewReader(string(data))); err != nil {
			return err
		}
	}
	if err := f.dockerPort(ctx, m, "open"); err != nil {
		return err
	}
	if err := step.Until(ctx, answers, nil); err != nil {
		return fmt.Errorf("connect to Docker of %s at %s: %w", m.name, dockerAddress(m), err)
	}
	return nil
}

// dockerPort runs dockerPortScript on the node; do is "open" or "close".
func (f *fleet) dockerPort(ctx context.Context, m member, do string) error {
	args := []string{"/bin/sh", "-c", dockerPortScript, "sh", do, dockerTLSDir, strconv.Itoa(dockerPort)}
	if err := f.node(m).Exec(ctx, driver.Exec{Args: args}); err != nil {
		return fmt.Errorf("%s the TLS port of %s: %w", do, m.name, err)
	}
	return nil
}

// CloseDockerEnv closes the port of a node that OpenDockerEnv opened, for all
// clients. Without a name it is the node to which env leads, of whatever cluster
// of this user.
func CloseDockerEnv(ctx context.Context, options Options, name string, env DockerEnv) error {
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	if name == "" {
		options.Name = filepath.Base(filepath.Dir(env.CertPath))
		if env.CertPath != (&fleet{Options: options}).certDir() {
			return nil // it leads to no node of a cluster
		}
	}
	return onNodes(ctx, options, nil, func(f *fleet, found []docker.FoundMachine) error {
		if name != "" {
			m, err := f.pickRunning(name, found)
			if err != nil {
				return err
			}
			return f.dockerPort(ctx, m, "close")
		}
		for _, m := range f.members() {
			if env.Host == "tcp://"+dockerAddress(m) && running(found, m) {
				return f.dockerPort(ctx, m, "close")
			}
		}
		return nil
	})
}

func dockerAddress(m member) string {
	return net.JoinHostPort(m.addr.String(), strconv.Itoa(dockerPort))
}

// reachable tries to connect to the node's address and accepts "connection
// refused" too: only an address without a route never answers.
func reachable(ctx context.Context, m member) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", dockerAddress(m))
	if err == nil {
		return conn.Close()
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return &step.Problem{
		Name: "node-unreachable", Text: fmt.Sprintf("connect to %s, where Docker of node %s is to answer: %v", dockerAddress(m), m.name, err),
		Remedy: "this machine needs a route to the cluster's network, and no firewall in between; `kube-bootstrap node ssh` needs neither",
	}
}

// dockerAnswers shakes hands with the node's port.
func dockerAnswers(ctx context.Context, m member, client *tls.Config) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	client = client.Clone()
	client.ServerName = m.name
	conn, err := (&tls.Dialer{Config: client}).DialContext(ctx, "tcp", dockerAddress(m))
	if err != nil {
		return err
	}
	defer conn.Close()
	// A server says only after the handshake what it thinks of our certificate.
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("GET /_ping HTTP/1.0\r\n\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// dockerAuthority is made once and kept where only this user can read it.
func (f *fleet) dockerAuthority() (*pki.Authority, error) {
	cert, errCert := os.ReadFile(filepath.Join(f.certDir(), "ca.pem"))
	key, errKey := os.ReadFile(filepath.Join(f.certDir(), "ca-key.pem"))
	if err := errors.Join(errCert, errKey); err == nil {
		return pki.ParseAuthority(pki.Pair{Cert: cert, Key: key})
	}
	ca, err := pki.NewAuthority("docker of "+f.Name, nil, time.Now())
	if err != nil {
		return nil, err
	}
	return ca, f.keep(map[string][]byte{"ca-key.pem": ca.PEM().Key, "ca.pem": ca.PEM().Cert})
}

// clientPair is the certificate by which nodes know this user, under the names
// that a docker client looks for.
func (f *fleet) clientPair() (*tls.Config, error) {
	ca, err := f.dockerAuthority()
	if err != nil {
		return nil, err
	}
	request := pki.Request{CommonName: "client", Client: true}
	pair := pki.Pair{}
	pair.Cert, _ = os.ReadFile(filepath.Join(f.certDir(), "cert.pem"))
	pair.Key, _ = os.ReadFile(filepath.Join(f.certDir(), "key.pem"))
	if ca.Stale(pair, request, time.Now()) != "" { // also when there is none
		if pair, err = ca.Issue(request, time.Now()); err != nil {
			return nil, err
		}
		if err := f.keep(map[string][]byte{"key.pem": pair.Key, "cert.pem": pair.Cert}); err != nil {
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

func (f *fleet) keep(files map[string][]byte) error {
	if err := os.MkdirAll(f.certDir(), 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := host.WriteFile(filepath.Join(f.certDir(), name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
