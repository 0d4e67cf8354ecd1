// Package docker is the client of a Docker engine, local or remote: containers of kube-bootstrap, commands
// in containers, images, networks and facts of the engine.
package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/cli/cli/config"
	dockercontext "github.com/docker/cli/cli/context"
	clidocker "github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Engine is one Docker engine.
type Engine struct {
	*client.Client
	Address string // "unix:///run/docker.sock"
}

// Open returns the engine behind a socket of this host, "/run/docker.sock". It
// does not connect yet.
func Open(socket string) *Engine {
	address := "unix://" + socket
	api, err := client.New(client.WithHost(address))
	if err != nil {
		panic(err) // impossible: the path of a socket is short
	}
	return &Engine{api, address}
}

// Answers returns nil once the engine answers. A refused connection is a
// certain result; every other error means that the state is unknown.
func (d *Engine) Answers(ctx context.Context) error {
	if socket, ok := strings.CutPrefix(d.Address, "unix://"); ok {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return step.Serves(err)
		}
		conn.Close()
	}
	_, err := d.Ping(ctx, client.PingOptions{})
	return step.NoAnswer(err)
}

// absent reports whether no engine runs: it was never started, or it was
// stopped cleanly. Its containers and images then cannot be in use.
func absent(err error) bool {
	return client.IsErrConnectionFailed(err) && errors.Is(err, fs.ErrNotExist)
}

// noAnswer marks an error of a request that the engine did not answer.
func noAnswer(err error) error {
	if client.IsErrConnectionFailed(err) || errors.Is(err, context.DeadlineExceeded) {
		return step.NoAnswer(err)
	}
	return err
}

// Version returns the engine's version and the newest API version it speaks.
func (d *Engine) Version(ctx context.Context) (version, api string, err error) {
	v, err := d.ServerVersion(ctx, client.ServerVersionOptions{})
	return v.Version, v.APIVersion, err
}

// Gone returns nil instead of the error that an object does not exist, because a removal is then done.
func Gone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// DefaultAddress is the default address of an engine.
const DefaultAddress = "unix:///var/run/docker.sock"

// Choice selects an engine. Empty fields are determined as by the docker command:
// DOCKER_HOST, DOCKER_CONTEXT, the current context.
type Choice struct {
	Address string // unix:///path, tcp://host:port or ssh://user@host
	Context string // a name in `docker context ls`
}

// Open returns the selected engine, which may be remote. It does not connect yet.
func (c Choice) Open() (*Engine, error) {
	endpoint, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	options, err := endpoint.ClientOpts()
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", endpoint.Host, err)
	}
	api, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", endpoint.Host, err)
	}
	return &Engine{Client: api, Address: endpoint.Host}, nil
}

func (c Choice) endpoint() (clidocker.Endpoint, error) {
	const defaultContext = "default"
	address, name := cmp.Or(c.Address, os.Getenv("DOCKER_HOST")), c.Context
	if c.Address == "" && name != "" && name != defaultContext {
		return fromContext(name)
	}
	if address == "" && name == "" {
		file, err := config.Load(config.Dir())
		if err != nil {
			return clidocker.Endpoint{}, fmt.Errorf("settings of the docker command: %w", err)
		}
		name = cmp.Or(os.Getenv("DOCKER_CONTEXT"), file.CurrentContext, defaultContext)
		if name != defaultContext {
			return fromContext(name)
		}
	}
	return atAddress(cmp.Or(address, DefaultAddress))
}

func fromContext(name string) (clidocker.Endpoint, error) {
	contexts := store.New(config.ContextStoreDir(), store.NewConfig(
		func() any { return &map[string]any{} },
		store.EndpointTypeGetter(clidocker.DockerEndpoint, func() any { return &clidocker.EndpointMeta{} }),
	))
	found, err := contexts.GetMetadata(name)
	if errdefs.IsNotFound(err) {
		return clidocker.Endpoint{},
			fmt.Errorf("docker context %s does not exist (`docker context ls` lists all contexts)", name)
	}
	if err != nil {
		return clidocker.Endpoint{}, step.Wrap(err, "docker context %s", name)
	}
	meta, err := clidocker.EndpointFromContext(found)
	if err != nil {
		return clidocker.Endpoint{}, step.Wrap(err, "docker context %s", name)
	}
	return clidocker.WithTLSData(contexts, name, meta)
}

// atAddress returns the endpoint of an address. A tcp address uses TLS if
// DOCKER_CERT_PATH or DOCKER_TLS_VERIFY is set. The certificate is always verified.
func atAddress(address string) (clidocker.Endpoint, error) {
	endpoint := clidocker.Endpoint{EndpointMeta: clidocker.EndpointMeta{Host: address}}
	at, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"unix", "tcp", "ssh"}, at.Scheme) {
		return endpoint, fmt.Errorf("engine %q: must be unix:///path, tcp://host:port or ssh://user@host", address)
	}
	dir := os.Getenv("DOCKER_CERT_PATH")
	if at.Scheme != "tcp" || dir == "" && os.Getenv("DOCKER_TLS_VERIFY") == "" {
		return endpoint, nil
	}
	dir = cmp.Or(dir, config.Dir())
	file := func(name string) string { return filepath.Join(dir, name) }
	endpoint.TLSData, err = dockercontext.TLSDataFromFiles(file("ca.pem"), file("cert.pem"), file("key.pem"))
	return endpoint, step.Wrap(err, "certificates for engine %s", address)
}

// Remote reports whether the engine may be on another machine, with other paths and ports.
func (d *Engine) Remote() bool { return !strings.HasPrefix(d.Address, "unix://") }

// MachineName returns the host name of the engine's machine, "" for this machine. It
// resolves an alias of the user's SSH configuration.
func (d *Engine) MachineName(ctx context.Context) (string, error) {
	if !d.Remote() {
		return "", nil
	}
	at, err := url.Parse(d.Address)
	if err != nil || at.Scheme != "ssh" {
		return at.Hostname(), err
	}
	out, err := host.Run(ctx, "ssh", "-G", at.Hostname())
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "hostname "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return at.Hostname(), nil
}
