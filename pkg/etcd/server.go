// Package etcd runs etcd in the bootstrap Docker, with TLS and users by certificate.
//
//	kube-apiserver ──CN root───────▶ :2379 ◀──CN flannel── flanneld of this host, gate of workers (pkg/etcd/gate)
//	other members  ──CN etcd-peer──▶ :2380
//	health, metrics, this host only  127.0.0.1:2381
//
//	Access                  a client certificate
//	 └── Endpoint           this host's etcd, as its clients reach it
//	      └── Member        this host among the members
//	           └── Server   the container
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	container          = "etcd"
	inside             = "/var/lib/etcd" // DataDir inside the container
	defaultQuota int64 = 2 << 30         // bytes; a 32-bit host cannot map more
)

// Server is the container of this host's member. Paths are paths of the host.
type Server struct {
	Member
	Docker        func() *docker.Engine // the bootstrap Docker
	Image         string
	Version       string // of the etcd in Image
	RestartPolicy string // "unless-stopped"
	ExtraArgs     config.Arguments

	ServingCert, ServingKey string // for clients

	// Both ports accept only certificates that PeerCA has signed, and the peer port
	// only the common name PeerName. PeerCA signs no certificate that leaves the
	// control planes, because a client of the peer port can act as root.
	PeerCA, PeerCert, PeerKey string
	PeerName                  string
}

// Start runs etcd and returns once it answers a linearizable read.
func (s Server) Start() step.Step {
	apply := func(ctx context.Context) error {
		if err := founderProblem(s); err != nil {
			return err
		}
		return s.apply(ctx)
	}
	return step.Step{ID: "start-etcd", Name: "start etcd", Check: s.check, Apply: apply, Undo: s.undo}
}

// founderProblem is the problem that the first member of several has lost its data
// [etcd-data]. etcd derives IDs from addresses: a new etcd here would be a cluster of its
// own with the ID of the old one, and the member that the others know.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/api/membership/member.go#L63-L75
func founderProblem(s Server) error {
	cluster, err := joined(s.Files)
	if err != nil || hasWAL(s.Files) || cluster != "" || len(s.Peers) == 0 {
		return err
	}
	return &step.Problem{Name: "etcd-data", Firm: true, Text: "the data of etcd on this host are lost", Remedy: s.dataRemedy()}
}

// apply starts etcd. Meanwhile it asks the other members whether this host is still one:
// etcd itself ends without an error if it is not.
func (s Server) apply(ctx context.Context) error {
	if err := s.run(ctx); err != nil {
		return err
	}
	if len(s.Peers) == 0 {
		return s.ready(ctx)
	}
	client, err := s.peers(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return step.Watching(ctx, func(ctx context.Context) error { return s.watchMember(ctx, client) }, s.ready)
}

func (s Server) run(ctx context.Context) error {
	if err := errors.Join(s.Files.MkdirPrivate(DataDir), noteVersion(s.Files, s.Version)); err != nil {
		return err
	}
	return s.service().Run(ctx)
}

// ready waits until etcd answers a linearizable read.
func (s Server) ready(ctx context.Context) error {
	return s.Do(ctx, func(client *clientv3.Client) error {
		probe := func(ctx context.Context) error { return read(ctx, client) }
		return step.Watching(ctx, s.watchStart, func(ctx context.Context) error { return step.Until(ctx, probe, s.tail(ctx)) })
	})
}

// tail returns the function that reads the end of etcd's log, for an error.
func (s Server) tail(ctx context.Context) func() string {
	return func() string { return s.service().Tail(ctx, 15) }
}

func (s Server) service() docker.Service {
	return docker.Service{Docker: s.Docker, Name: container, Container: s.container}
}

// RunningSince returns the start time of etcd; ok is false if it does not run.
func (s Server) RunningSince(ctx context.Context) (since time.Time, ok bool, err error) {
	return s.service().StartedAt(ctx)
}

// undo removes etcd and its data.
func (s Server) undo(ctx context.Context) error {
	if err := s.service().Remove(ctx); err != nil {
		return err
	}
	return removeData(s.Files)
}

func (s Server) container() (docker.Container, error) {
	print, printErr := s.Files.Fingerprint(s.ServingCert, s.PeerCA, s.PeerCert)
	cluster, err := joined(s.Files)
	if err := cmp.Or(printErr, err); err != nil {
		return docker.Container{}, err
	}
	return docker.Container{
		Name:    container,
		Image:   s.Image,
		Command: s.ExtraArgs.Over(s.command(cluster)),
		Env:     env(print),
		Restart: s.RestartPolicy,
		Mounts:  s.mounts(),
		// etcd transfers its leadership and completes its requests before it stops.
		// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/server.go#L1323-L1335
		StopFirst: true,
	}, nil
}

// command returns the command of a member. cluster is the value of --initial-cluster,
// "name=https://ip:2380,...", with this member; "" creates a new cluster.
func (s Server) command(cluster string) []string {
	state := "existing"
	if cluster == "" {
		cluster, state = s.Name+"="+peerURL(s.IP), "new"
	}
	return []string{
		"etcd",
		"--name=" + s.Name,
		"--data-dir=" + inside,
		"--listen-client-urls=" + s.URL() + ",https://127.0.0.1:2379",
		"--advertise-client-urls=" + s.URL(),
		"--listen-peer-urls=" + peerURL(s.IP),
		"--initial-advertise-peer-urls=" + peerURL(s.IP),
		"--initial-cluster=" + cluster,
		"--initial-cluster-state=" + state,
		"--initial-cluster-token=kube-bootstrap",
		"--client-cert-auth",
		"--trusted-ca-file=" + s.PeerCA,
		"--enable-grpc-gateway=false", // it would be a client with the serving certificate
		"--cert-file=" + s.ServingCert,
		"--key-file=" + s.ServingKey,
		"--peer-client-cert-auth",
		"--peer-cert-allowed-cn=" + s.PeerName,
		"--peer-trusted-ca-file=" + s.PeerCA,
		"--peer-cert-file=" + s.PeerCert,
		"--peer-key-file=" + s.PeerKey,
		"--tls-min-version=TLS1.2",
		"--listen-metrics-urls=http://127.0.0.1:2381",
		fmt.Sprintf("--quota-backend-bytes=%d", s.quota()),
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=8h", // the API server compacts more often; this covers the time before it runs
		"--snapshot-count=10000",
	}
}

// quota returns the size of the database in bytes at which etcd refuses writes.
func (s Server) quota() int64 {
	if own, err := strconv.ParseInt(s.ExtraArgs["quota-backend-bytes"], 10, 64); err == nil && own > 0 {
		return own
	}
	return defaultQuota
}

// env contains a hash of the certificates, so that renewed certificates replace the
// container. It also allows architectures that etcd does not test.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdmain/etcd.go#L237-L252
func env(print string) []string {
	env := []string{"KUBE_BOOTSTRAP_CERTIFICATES=" + print}
	if !slices.Contains([]string{"amd64", "arm64", "ppc64le", "s390x"}, runtime.GOARCH) {
		env = append(env, "ETCD_UNSUPPORTED_ARCH="+runtime.GOARCH)
	}
	return env
}

func (s Server) mounts() []docker.Mount {
	mounts := []docker.Mount{{Source: s.Files.Path(DataDir), Target: inside}}
	for _, path := range []string{s.ServingCert, s.ServingKey, s.PeerCA, s.PeerCert, s.PeerKey} {
		mounts = append(mounts, docker.Mount{Source: s.Files.Path(path), Target: filepath.Clean(path), ReadOnly: true})
	}
	return mounts
}
