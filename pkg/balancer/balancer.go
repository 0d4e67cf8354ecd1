// Package balancer leads a host to whichever control plane is alive: one port
// on 127.0.0.1 leads to an API server, the next one to an etcd. So nothing on
// the host needs to know how many control planes there are, or where.
//
//	kubelet, kube-proxy ──▶ 127.0.0.1:6440 ──▶ API server of this host, else of another
//	flanneld            ──▶ 127.0.0.1:6441 ──▶ etcd, likewise
//
// It hands bytes on and reads none: TLS goes through it from end to end, and
// the API servers' certificates hold for 127.0.0.1.
package balancer

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	container = "balancer"
	stateDir  = host.StateDir + "/balancer"
)

// Balancer is the balancer of this host: this very program in a container of
// the bootstrap Docker, which starts before the network and survives a restart
// of the main Docker.
type Balancer struct {
	Settings
	Docker        func() (*docker.Engine, error) // the bootstrap Docker
	Files         host.Files
	Image         string // one that is there: nothing of it runs
	Program       string // this program as the host keeps it
	RestartPolicy string // "unless-stopped"
	// Seeds are the control planes to begin with, until one of them has told
	// which others there are.
	Seeds []string
}

// Settings are what the running balancer itself must know. Paths are those on
// the host.
type Settings struct {
	Own       string `json:"own"`       // the address of this host, whose servers are preferred
	Port      int    `json:"port"`      // on 127.0.0.1, to an API server; the next one is to an etcd
	APIPort   int    `json:"apiPort"`   // of the API servers
	ClusterCA string `json:"clusterCA"` // the authority of the API servers
	EtcdCA    string `json:"etcdCA"`
	Cert      string `json:"cert"` // a client certificate of etcd that may read the list of control planes
	Key       string `json:"key"`
}

// Address is where an API server is found on every host.
func (s Settings) Address() string { return local(s.Port) }

// EtcdAddress is where an etcd is found on every host.
func (s Settings) EtcdAddress() string { return local(s.Port + 1) }

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Start runs the balancer and returns once it listens.
func (b Balancer) Start() step.Step {
	return step.Step{Name: "start the balancer", Check: b.check, Apply: b.apply, Undo: b.undo}
}

func (b Balancer) check(ctx context.Context) (step.Diff, error) {
	diff, err := b.service().Diff(ctx)
	if err != nil {
		return nil, err
	}
	if _, stale, err := b.seeded(); err != nil || stale {
		return append(diff, "write "+stateFile), err
	}
	return diff, nil
}

func (b Balancer) apply(ctx context.Context) error {
	if err := b.seed(ctx); err != nil {
		return err
	}
	if err := b.service().Run(ctx); err != nil {
		return err
	}
	return step.Watching(ctx, b.service().Watch, func(ctx context.Context) error {
		return step.Until(ctx, b.listens, func() string { return b.service().Tail(ctx, 15) })
	})
}

func (b Balancer) service() docker.Service {
	return docker.Service{Docker: b.Docker, Name: container, Container: b.container}
}

// seed writes the control planes to begin with; a balancer that runs with other
// ones is stopped before.
func (b Balancer) seed(ctx context.Context) error {
	begin, stale, err := b.seeded()
	if err != nil || !stale {
		return err
	}
	if err := b.service().Remove(ctx); err != nil {
		return err
	}
	return writeState(b.Files, begin)
}

// seeded returns the state to begin with, and whether that must be written:
// what a control plane has told is more than we know.
func (b Balancer) seeded() (begin State, stale bool, err error) {
	begin, err = ReadState(b.Files)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return begin, false, err
	}
	if begin.Told {
		return begin, false, nil
	}
	for _, ip := range b.Seeds {
		if !slices.ContainsFunc(begin.ControlPlanes, func(c ControlPlane) bool { return c.IP == ip }) {
			begin.ControlPlanes, stale = append(begin.ControlPlanes, ControlPlane{IP: ip}), true
		}
	}
	return begin, stale, nil
}

func (b Balancer) listens(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.EtcdAddress())
	if err != nil {
		return err
	}
	return conn.Close()
}

func (b Balancer) undo(ctx context.Context) error {
	if err := b.service().Remove(ctx); err != nil {
		return err
	}
	return b.Files.RemoveAll(stateDir)
}

func (b Balancer) container() (docker.Container, error) {
	certificates, err := b.Files.Fingerprint(b.reads()...)
	if err != nil {
		return docker.Container{}, err
	}
	return docker.Container{
		Name:    container,
		Image:   b.Image,
		Command: b.command(),
		// Other certificates replace the container. It holds no more than a few
		// addresses and connections, so it may collect its garbage often.
		Env:     []string{"KUBE_BOOTSTRAP_CERTIFICATES=" + certificates, "GOGC=25"},
		Mounts:  b.mounts(),
		Restart: b.RestartPolicy,
	}, nil
}

func (b Balancer) command() []string {
	settings, err := json.Marshal(b.Settings)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return []string{b.Program, "balance", string(settings)}
}

func (b Balancer) reads() []string { return []string{b.ClusterCA, b.EtcdCA, b.Cert, b.Key} }

// mounts has the program's directory rather than the program, which is replaced
// by another file when it is renewed.
func (b Balancer) mounts() []docker.Mount {
	dir := filepath.Dir(b.Program)
	mounts := []docker.Mount{
		{Source: b.Files.Path(stateDir), Target: stateDir},
		{Source: b.Files.Path(dir), Target: dir, ReadOnly: true},
	}
	for _, path := range b.reads() {
		mounts = append(mounts, docker.Mount{Source: b.Files.Path(path), Target: path, ReadOnly: true})
	}
	return mounts
}
