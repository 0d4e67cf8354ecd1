package testhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/localregistry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// RegistrySettings describe the local registry of a cluster.
type RegistrySettings struct {
	Port    int             // on 127.0.0.1 of the engine's machine; 0: the cluster has no registry
	Mirrors []mirror.Mirror // that it pulls from
	Cache   int64           // limit for the images of other registries in bytes; 0: localregistry.DefaultCache
}

// RegistryOf returns the settings of the local registry in the settings of a cluster.
func RegistryOf(cfg config.Config) RegistrySettings {
	return RegistrySettings{
		Port: cfg.LocalRegistry, Mirrors: cfg.RegistryMirrors, Cache: cfg.LocalRegistryCache.Value(),
	}
}

// RegistryName returns the name of the container of the registry, and of the
// volume with its images. It contains a dot, which no host name does.
func RegistryName(cluster string) string { return cluster + ".registry" }

// localRegistry is a container in the network of a cluster, with a fixed address
// and a volume. Like the load balancer, it has no credentials and no capabilities.
type localRegistry struct{ Setup }

const localRegistryID step.ID = "local-registry"

// LocalRegistry returns the step that starts the registry in the cluster's network, or removes
// the container if the cluster has no registry any more. The volume stays until the
// cluster is removed.
func (u Setup) LocalRegistry() step.Step {
	if u.Topology.ControlPlanes() == 0 {
		return step.Step{}
	}
	c := u.Cluster
	if u.Registry.Port > 0 {
		r := localRegistry{u}
		return runStep(localRegistryID, "start the local registry of "+c.Name, c, r.container, r.run)
	}
	name := RegistryName(c.Name)
	return step.When(localRegistryID, "remove the local registry of "+c.Name, "remove container "+name,
		func(ctx context.Context) (bool, error) {
			_, exists, err := c.Attached(ctx, name)
			return exists, err
		}, func(ctx context.Context) error { return c.Engine.Remove(ctx, name) })
}

// container describes the registry. The command contains all settings, so that
// other settings replace the container.
func (r localRegistry) container(context.Context) (docker.Container, programImage, error) {
	const authorities = "authorities.crt"
	image, err := newProgramImage("kube-bootstrap/registry:", r.Binary, []docker.ImageFile{
		// a new volume gets this owner
		{Name: strings.TrimPrefix(localregistry.Dir, "/") + "/", Mode: 0o755, Owner: docker.Nobody},
		{Name: authorities, Data: trustedAuthorities(), Mode: 0o644},
	})
	name := RegistryName(r.Cluster.Name)
	command := []string{"/kube-bootstrap", "registry", "--name", localregistry.Name(r.Registry.Port)}
	for _, m := range r.Registry.Mirrors {
		command = append(command, "--mirror", m.String())
	}
	if r.Registry.Cache > 0 {
		command = append(command, "--cache", strconv.FormatInt(r.Registry.Cache, 10))
	}
	return docker.Container{
		Name: name, Image: image.name, Command: command,
		Env:     append([]string{"GOGC=25", "SSL_CERT_FILE=/" + authorities}, proxies()...),
		Mounts:  []docker.Mount{{Source: name, Target: localregistry.Dir, Volume: true}},
		Restart: "unless-stopped",
		On: docker.Attachment{
			Cluster: r.Cluster.Name, Network: r.Cluster.Name, Addr: topology.RegistryAddr(r.Subnet),
			Ports:  map[uint16]uint16{localregistry.Port: uint16(r.Registry.Port)},
			HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		},
	}, image, err
}

func (r localRegistry) run(ctx context.Context, c docker.Container) error {
	if err := r.Cluster.Volumes.Make(ctx, c.Name, nil); err != nil {
		return err
	}
	err := r.Cluster.Engine.Run(ctx, c)
	if errors.Is(err, docker.ErrPortTaken) {
		return RegistryPortTaken(r.Registry.Port, err)
	}
	return err
}

// RegistryPortTaken returns the problem that the port of the registry is in use.
func RegistryPortTaken(port int, err error) error {
	return &step.Problem{Name: "local-registry-port",
		Text:   fmt.Sprintf("--local-registry %d is taken on the machine of the Docker engine: %v", port, err),
		Remedy: "use another port"}
}

// proxies returns the variables with the proxies of this machine. A proxy at a
// loopback address is not reached from a container, so the registry goes without.
// `docker inspect` shows the variables to every user of the engine. The same is true
// of the proxies in the configuration of Docker's client.
func proxies() (all []string) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		if proxy := asURL(variable(name)); proxy != "" && !atLoopback(proxy) {
			all = append(all, name+"="+proxy)
		}
	}
	if none := variable("NO_PROXY"); none != "" {
		all = append(all, "NO_PROXY="+none)
	}
	return all
}

// variable returns a variable that may also have a name in lower case.
func variable(name string) string {
	return cmp.Or(os.Getenv(name), os.Getenv(strings.ToLower(name)))
}

// asURL adds the scheme that a proxy has by default. Reports for bug reports
// recognize a password in a URL only.
func asURL(proxy string) string {
	if proxy != "" && !strings.Contains(proxy, "://") {
		return "http://" + proxy
	}
	return proxy
}

func atLoopback(proxy string) bool {
	u, err := url.Parse(proxy)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.IsLoopback()
}

// trustedAuthorities returns the certificate authorities that this machine trusts,
// because an image of one program has none. Without them, the registry pulls from
// no upstream.
func trustedAuthorities() []byte {
	for _, path := range []string{
		os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if data, err := os.ReadFile(path); err == nil {
			return data
		}
	}
	return nil
}
