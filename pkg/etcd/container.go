// Package etcd runs etcd in the bootstrap Docker, with TLS and users by certificate.
//
//	kube-apiserver ──CN root───────▶ :2379 ◀──CN flannel── flanneld of this host, gate of workers (pkg/etcd/gate)
//	other members  ──CN etcd-peer──▶ :2380
//	health, metrics, this host only  127.0.0.1:2381
//
// Each value holds other values in named fields:
//
//	Credentials   a client certificate
//	Client        calls to the etcd of this host, its users and roles
//	Data          the files of this host's member: data, WAL, records
//	Member        this host among the members: join, leave, the list of control planes
//	Database      the history of keys, the quota
//	Container     the container of etcd: started, joined, checked, and why it ends
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

// MemberContainer is the container of this host's member. Paths are paths of the host.
type MemberContainer struct {
	Member        Member
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

	suffix string // of the names of the container and of the data directory, see Forced
}

// Start runs etcd and returns once it answers a linearizable read.
func (c MemberContainer) Start() step.Step {
	apply := func(ctx context.Context) error {
		if err := founderProblem(c); err != nil {
			return err
		}
		return c.apply(ctx)
	}
	return step.Step{ID: "start-etcd", Name: "start etcd", Check: c.check, Apply: apply, Undo: c.undo}
}

// founderProblem is the problem that the first member of several has lost its data
// [etcd-data]. etcd derives IDs from addresses: a new etcd here would be a cluster of its
// own with the ID of the old one, and the member that the others know.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/api/membership/member.go#L63-L75
func founderProblem(c MemberContainer) error {
	cluster, err := c.Member.Data.cluster()
	if err != nil || c.Member.Data.hasWAL() || cluster != "" || len(c.Member.Peers) == 0 {
		return err
	}
	return &step.Problem{
		Name: "etcd-data", Firm: true, Text: "the data of etcd on this host are lost", Remedy: c.Member.dataRemedy(),
	}
}

// apply starts etcd, unless this host is no member. Meanwhile it asks the other members whether this host is still one:
// etcd itself ends without an error if it is not.
func (c MemberContainer) apply(ctx context.Context) error {
	if err := c.Member.Outside(ctx); err != nil {
		return err
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	if len(c.Member.Peers) == 0 {
		return c.ready(ctx)
	}
	client, err := c.Member.peers(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return step.Watching(ctx, func(ctx context.Context) error { return c.Member.watchMember(ctx, client) }, c.ready)
}

func (c MemberContainer) run(ctx context.Context) error {
	if err := errors.Join(c.Member.Data.Files.MkdirPrivate(DataDir), c.Member.Data.noteStart(c.Version)); err != nil {
		return err
	}
	return c.service().Run(ctx)
}

// ready waits until etcd answers a linearizable read.
func (c MemberContainer) ready(ctx context.Context) error {
	return c.Member.Client.Do(ctx, func(client *clientv3.Client) error {
		probe := func(ctx context.Context) error { return read(ctx, client) }
		return step.Watching(ctx, c.watchStart,
			func(ctx context.Context) error { return step.Until(ctx, probe, c.tail(ctx)) })
	})
}

// tail returns the function that reads the end of etcd's log, for an error.
func (c MemberContainer) tail(ctx context.Context) func() string {
	return func() string { return c.service().Tail(ctx, 15) }
}

func (c MemberContainer) service() docker.ManagedContainer {
	return docker.ManagedContainer{Docker: c.Docker, Name: container + c.suffix, Container: c.definition}
}

// RunningSince returns the start time of etcd; ok is false if it does not run.
func (c MemberContainer) RunningSince(ctx context.Context) (since time.Time, ok bool, err error) {
	return c.service().StartedAt(ctx)
}

// undo removes etcd and its data.
func (c MemberContainer) undo(ctx context.Context) error {
	if err := c.service().Remove(ctx); err != nil {
		return err
	}
	return c.Member.Data.remove()
}

func (c MemberContainer) definition() (docker.Container, error) {
	print, printErr := c.Member.Data.Files.Fingerprint(c.ServingCert, c.PeerCA, c.PeerCert)
	cluster, err := c.Member.Data.cluster()
	if err := cmp.Or(printErr, err); err != nil {
		return docker.Container{}, err
	}
	return docker.Container{
		Name:    container + c.suffix,
		Image:   c.Image,
		Command: c.ExtraArgs.Over(c.command(cluster)),
		Env:     env(print),
		Restart: c.RestartPolicy,
		Mounts:  c.mounts(),
		// etcd transfers its leadership and completes its requests before it stops.
		// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/server.go#L1323-L1335
		StopFirst: true,
	}, nil
}

// command returns the command of a member. cluster is the value of --initial-cluster,
// "name=https://ip:2380,...", with this member; "" creates a new cluster.
func (c MemberContainer) command(cluster string) []string {
	state := "existing"
	if cluster == "" {
		cluster, state = c.Member.alone(), "new"
	}
	return []string{
		"etcd",
		"--name=" + c.Member.Name,
		"--data-dir=" + inside,
		"--listen-client-urls=" + c.Member.Client.URL() + ",https://127.0.0.1:2379",
		"--advertise-client-urls=" + c.Member.Client.URL(),
		"--listen-peer-urls=" + peerURL(c.Member.Client.IP),
		"--initial-advertise-peer-urls=" + peerURL(c.Member.Client.IP),
		"--initial-cluster=" + cluster,
		"--initial-cluster-state=" + state,
		"--initial-cluster-token=kube-bootstrap",
		"--client-cert-auth",
		"--trusted-ca-file=" + c.PeerCA,
		"--enable-grpc-gateway=false", // it would be a client with the serving certificate
		"--cert-file=" + c.ServingCert,
		"--key-file=" + c.ServingKey,
		"--peer-client-cert-auth",
		"--peer-cert-allowed-cn=" + c.PeerName,
		"--peer-trusted-ca-file=" + c.PeerCA,
		"--peer-cert-file=" + c.PeerCert,
		"--peer-key-file=" + c.PeerKey,
		"--tls-min-version=TLS1.2",
		"--listen-metrics-urls=http://127.0.0.1:2381",
		fmt.Sprintf("--quota-backend-bytes=%d", c.quota()),
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=8h", // the API server compacts more often; this covers the time before it runs
		"--snapshot-count=10000",
	}
}

// Database returns the database of this member.
func (c MemberContainer) Database() Database { return Database{Member: c.Member, Quota: c.quota()} }

// quota returns the size of the database in bytes at which etcd refuses writes.
func (c MemberContainer) quota() int64 {
	if own, err := strconv.ParseInt(c.ExtraArgs["quota-backend-bytes"], 10, 64); err == nil && own > 0 {
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

func (c MemberContainer) mounts() []docker.Mount {
	mounts := []docker.Mount{{Source: c.Member.Data.Files.Path(DataDir + c.suffix), Target: inside}}
	for _, path := range []string{c.ServingCert, c.ServingKey, c.PeerCA, c.PeerCert, c.PeerKey} {
		mounts = append(mounts, docker.Mount{
			Source: c.Member.Data.Files.Path(path), Target: filepath.Clean(path), ReadOnly: true,
		})
	}
	return mounts
}
