// Package etcd runs etcd as a container of the bootstrap Docker, with TLS on
// every port and users by certificate.
//
//	kube-apiserver ──CN root───────▶ :2379 ◀──CN flannel── flanneld (only /coreos.com/network/)
//	other members  ──CN etcd-peer──▶ :2380 (an authority that only control planes know)
//	health, metrics, this host only  127.0.0.1:2381
package etcd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// DataDir is the data directory of etcd on a host.
const DataDir = host.StateDir + "/etcd"

// defaultQuota is the quota of a host without a setting for it. A 32-bit host
// cannot map more.
const defaultQuota int64 = 2 << 30

const (
	container = "etcd"
	inside    = "/var/lib/etcd" // DataDir inside the container
)

// Member is the etcd of this host. Paths are paths of the host.
type Member struct {
	Docker        func() (*docker.Engine, error) // the bootstrap Docker
	Files         host.Files
	Image         string
	Version       string // of the etcd in Image
	Name          string // of the member: the node's name
	IP            string
	Addresses     []string // further addresses of the host
	RestartPolicy string   // "unless-stopped"
	ExtraArgs     config.Arguments

	CA, Cert, Key     string // the CA of clients, and etcd's serving certificate
	RootCert, RootKey string // a client certificate with the common name root

	// Members authenticate to one another with PeerCert. The peer port accepts
	// only the common name PeerName, signed by PeerCA. PeerCA must not sign
	// other certificates, because a client of the peer port can act as root.
	PeerCA, PeerCert, PeerKey string
	PeerName                  string

	// Peers are the known addresses of the control planes of the cluster that
	// this member joins. None: a new cluster.
	Peers []string
}

// Start runs etcd and returns once it answers a linearizable read.
func (m Member) Start() step.Step {
	return step.Step{Name: "start etcd", Check: m.check, Apply: m.apply, Undo: m.undo}
}

func (m Member) check(ctx context.Context) (step.Diff, error) {
	diff, err := m.service().Diff(ctx)
	if err != nil {
		return nil, err
	}
	if reason := m.ended(ctx); reason != nil {
		return step.Diff{"restart etcd: " + reason.Error()}, nil
	}
	if started, err := Started(m.Files); err == nil && started == "" && m.HasData() {
		diff = append(diff, "write "+startedFile)
	}
	if !m.Files.IsPrivate(DataDir) {
		diff = append(diff, "create "+DataDir+", for root only")
	}
	if len(diff) > 0 {
		return diff, nil
	}
	return step.DiffOf(step.Serves(m.answers(ctx)), "wait for etcd to answer")
}

func (m Member) apply(ctx context.Context) error {
	if err := m.run(ctx); err != nil {
		return err
	}
	return m.ready(ctx)
}

func (m Member) run(ctx context.Context) error {
	if err := errors.Join(m.Files.MkdirPrivate(DataDir), m.noteVersion()); err != nil {
		return err
	}
	return m.service().Run(ctx)
}

func (m Member) service() docker.Service {
	return docker.Service{Docker: m.Docker, Name: container, Container: m.container}
}

// RunningSince returns the start time of etcd. ok is false if it does not
// run.
func (m Member) RunningSince(ctx context.Context) (since time.Time, ok bool, err error) {
	return m.service().StartedAt(ctx)
}

// undo removes etcd and its data.
func (m Member) undo(ctx context.Context) error {
	if err := m.service().Remove(ctx); err != nil {
		return err
	}
	return m.removeData()
}

func (m Member) container() (docker.Container, error) {
	print, err := m.Files.Fingerprint(m.CA, m.Cert, m.PeerCA, m.PeerCert)
	if err != nil {
		return docker.Container{}, err
	}
	cluster, err := m.joined()
	if err != nil {
		return docker.Container{}, err
	}
	return docker.Container{
		Name:    container,
		Image:   m.Image,
		Command: m.ExtraArgs.Over(m.command(cluster)),
		Env:     m.env(print),
		Restart: m.RestartPolicy,
		Mounts:  m.mounts(),
		// etcd transfers its leadership and completes its requests before it stops.
		StopFirst: true,
	}, nil
}

// command returns the command of a member. cluster is the value of
// --initial-cluster, "name=https://ip:2380,...", with this member; "" creates
// a new cluster.
func (m Member) command(cluster string) []string {
	state := "existing"
	if cluster == "" {
		cluster, state = m.Name+"="+m.url(2380), "new"
	}
	return []string{
		"etcd",
		"--name=" + m.Name,
		"--data-dir=" + inside,
		"--listen-client-urls=" + m.url(2379) + ",https://127.0.0.1:2379",
		"--advertise-client-urls=" + m.url(2379),
		"--listen-peer-urls=" + m.url(2380),
		"--initial-advertise-peer-urls=" + m.url(2380),
		"--initial-cluster=" + cluster,
		"--initial-cluster-state=" + state,
		"--initial-cluster-token=kube-bootstrap",
		"--client-cert-auth",
		"--trusted-ca-file=" + m.CA,
		"--cert-file=" + m.Cert,
		"--key-file=" + m.Key,
		"--peer-client-cert-auth",
		"--peer-cert-allowed-cn=" + m.PeerName,
		"--peer-trusted-ca-file=" + m.PeerCA,
		"--peer-cert-file=" + m.PeerCert,
		"--peer-key-file=" + m.PeerKey,
		"--tls-min-version=TLS1.2",
		"--listen-metrics-urls=http://127.0.0.1:2381",
		fmt.Sprintf("--quota-backend-bytes=%d", m.quota()),
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=8h", // the API server compacts more often; this covers the time before it runs
		"--snapshot-count=10000",
	}
}

// quota returns the size of the database in bytes at which etcd refuses writes.
func (m Member) quota() int64 {
	if own, err := strconv.ParseInt(m.ExtraArgs["quota-backend-bytes"], 10, 64); err == nil && own > 0 {
		return own
	}
	return defaultQuota
}

func (m Member) url(port int) string { return fmt.Sprintf("https://%s:%d", m.IP, port) }

// env contains a hash of the certificates, so that renewed certificates
// replace the container. It also allows architectures that etcd does not
// test.
func (m Member) env(print string) []string {
	env := []string{"KUBE_BOOTSTRAP_CERTIFICATES=" + print}
	if !slices.Contains([]string{"amd64", "arm64", "ppc64le", "s390x"}, runtime.GOARCH) {
		env = append(env, "ETCD_UNSUPPORTED_ARCH="+runtime.GOARCH)
	}
	return env
}

func (m Member) mounts() []docker.Mount {
	mounts := []docker.Mount{{Source: m.Files.Path(DataDir), Target: inside}}
	for _, path := range []string{m.CA, m.Cert, m.Key, m.PeerCA, m.PeerCert, m.PeerKey} {
		mounts = append(mounts, docker.Mount{Source: m.Files.Path(path), Target: filepath.Clean(path), ReadOnly: true})
	}
	return mounts
}
