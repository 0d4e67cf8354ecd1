package flannel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

const (
	container    = "flannel"
	wireguardKey = "wireguard.key"
)

// Flanneld is the flanneld of this host. Paths are paths of the host.
type Flanneld struct {
	Docker        func() *docker.Engine // the bootstrap Docker
	Files         host.Files
	Image         string
	Etcd          EtcdAccess
	Host          string     // the name for which a subnet is reserved
	PublicIP      netip.Addr // from which this host sends, and under which the others reach it
	IPMasq        bool
	Backend       string // as in Network
	SubnetDir     string // directory of subnet.env; on disk, so that the subnet survives a reboot
	RestartPolicy string // "unless-stopped"

	// Network is the network of the lease, if it is known. A change replaces the container.
	Network netip.Prefix
	// KeepModule reports whether something other than flanneld needs a kernel
	// module, so that Undo must not unload it. It may be nil.
	KeepModule func(ctx context.Context, name string) bool
}

// StartID identifies Daemon.Start.
const StartID step.ID = "start-flanneld"

// Start runs flanneld and returns once it has written this host's lease.
func (d Flanneld) Start() step.Step {
	return step.Step{ID: StartID, Name: "start flanneld", Check: d.check, Apply: d.apply, Undo: d.undo}
}

func (d Flanneld) check(ctx context.Context) (step.Diff, error) {
	diff, err := d.service().Diff(ctx)
	record, recordErr := moduleRecord.DiffIfSaved(d.Files)
	if err = errors.Join(err, recordErr); err != nil {
		return nil, err
	}
	diff = append(diff, record...)
	if !kernel.HasBridgeNetfilter() {
		diff = append(diff, "load kernel module "+bridgeNetfilter)
	}
	if len(diff) > 0 {
		return diff, nil
	}
	_, err = d.lease(ctx)
	return step.DiffOf(err, "wait for the lease in "+d.leasePath())
}

func (d Flanneld) service() docker.ManagedContainer {
	return docker.ManagedContainer{Docker: d.Docker, Name: container, Container: d.container}
}

func (d Flanneld) apply(ctx context.Context) error {
	if err := errors.Join(repairModules(d.Files), loadModules(ctx, d.Files, d.Backend)); err != nil {
		return err
	}
	if err := d.Files.MkdirAll(d.SubnetDir); err != nil {
		return err
	}
	return d.runAndWait(ctx)
}

func (d Flanneld) leasePath() string { return filepath.Join(d.SubnetDir, subnet.File) }

func (d Flanneld) container() (docker.Container, error) {
	env, err := d.env()
	if err != nil {
		return docker.Container{}, err
	}
	return docker.Container{
		Name:    container,
		Image:   d.Image,
		Command: d.command(),
		Env:     env,
		Mounts:  d.mounts(),
		Caps:    []string{"NET_ADMIN", "NET_RAW"},
		Restart: d.RestartPolicy,
	}, nil
}

func (d Flanneld) command() []string {
	args := []string{
		"flanneld",
		"--etcd-endpoints=" + strings.Join(d.Etcd.Endpoints, ","),
		"--etcd-prefix=" + prefix,
		"--etcd-cafile=" + d.Etcd.CA,
		"--etcd-certfile=" + d.Etcd.Cert,
		"--etcd-keyfile=" + d.Etcd.Key,
		"--subnet-file=" + d.leasePath(),
		fmt.Sprintf("--ip-masq=%t", d.IPMasq),
		"--healthz-port=0",
	}
	if ip := d.PublicIP; ip.IsValid() {
		// With the name of the interface, flanneld would send from its first address.
		// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/ipmatch/match.go#L239-L243
		args = append(args, "--iface="+ip.String(), "--public-ip="+ip.String())
	}
	return args
}

// env contains a hash or the value of each input that is not an argument, so that a
// change replaces the container. The WireGuard key outlives the container.
func (d Flanneld) env() ([]string, error) {
	certificates, err := d.Files.Fingerprint(d.Etcd.CA, d.Etcd.Cert)
	if err != nil {
		return nil, err
	}
	env := []string{
		"KUBE_BOOTSTRAP_CERTIFICATES=" + certificates,
		"KUBE_BOOTSTRAP_BACKEND=" + d.Backend,
		"WIREGUARD_KEY_FILE=" + filepath.Join(d.SubnetDir, wireguardKey),
	}
	if d.Network.IsValid() {
		env = append(env, "KUBE_BOOTSTRAP_NETWORK="+d.Network.String())
	}
	return env, nil
}

func (d Flanneld) mounts() []docker.Mount {
	mounts := []docker.Mount{{Source: d.Files.Path(d.SubnetDir), Target: d.SubnetDir}}
	readOnly := []string{d.Etcd.CA, d.Etcd.Cert, d.Etcd.Key}
	if d.Files.Exists("/lib/modules") {
		readOnly = append(readOnly, "/lib/modules")
	}
	for _, path := range readOnly {
		mounts = append(mounts, docker.Mount{Source: d.Files.Path(path), Target: path, ReadOnly: true})
	}
	if d.Backend == "udp" {
		mounts = append(mounts, docker.Mount{Source: "/dev/net/tun", Target: "/dev/net/tun"})
	}
	return mounts
}

// undo stops flanneld and removes its link, routes, firewall rules and lease. It
// removes subnet.env last, because that file identifies the routes.
func (d Flanneld) undo(ctx context.Context) error {
	if err := d.service().Remove(ctx); err != nil {
		return err
	}
	deleteLinks := func(context.Context) error { return host.Each(allLinks, links.Delete) }
	release := func(ctx context.Context) error { d.release(ctx); return nil }
	err := host.Concurrently(ctx, removeRules, deleteLinks, release)
	if err := errors.Join(err, d.deleteRoutes()); err != nil {
		return err
	}
	if err := unloadModules(ctx, d.Files, d.KeepModule); err != nil {
		return err
	}
	written := append(d.halfWritten(), d.leasePath(), filepath.Join(d.SubnetDir, wireguardKey))
	return d.Files.Drop(written...)
}

// halfWritten returns the temporary files that a killed flanneld has left: ".subnet.env", or since
// 0.28.10 that name with a number.
// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/subnet/writefile_other.go#L25-L27
// https://github.com/google/renameio/blob/v2.0.2/tempfile.go#L294-L296
func (d Flanneld) halfWritten() []string {
	return d.Files.Match(filepath.Join(d.SubnetDir, "."+subnet.File+"*"))
}

func removeRules(ctx context.Context) error {
	return errors.Join(
		netfilter.DeleteNftTable(ctx, "ip flannel-ipv4"),
		netfilter.DeleteNftTable(ctx, "ip6 flannel-ipv6"),
		netfilter.DeleteChains(ctx, func(chain string) bool { return strings.HasPrefix(chain, "FLANNEL-") }),
	)
}

// deleteRoutes deletes the routes of host-gw, which no link takes with it. Without a
// lease these are the routes to the configured network, if flanneld has run on this host: on
// any other host they may be the user's.
func (d Flanneld) deleteRoutes() error {
	lease, err := subnet.Read(d.Files, d.SubnetDir)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		return links.DeleteRoutesVia(lease.Network)
	case !missing && errors.As(err, new(*fs.PathError)):
		return err
	case d.Backend == "host-gw" && (!missing || d.hasRun()):
		return links.DeleteRoutesVia(d.Network)
	}
	return nil
}

// hasRun reports whether this host has the directory that apply creates and undo removes.
func (d Flanneld) hasRun() bool { return d.Files.Created(d.SubnetDir) && d.Files.Exists(d.SubnetDir) }

// Left lists the links of flanneld and the table of HostFilter that still exist.
func Left(ctx context.Context) (left []string, err error) {
	if exists, findErr := filterExists(ctx); exists || findErr != nil {
		left, err = append(left, "table "+strings.TrimPrefix(filterTable, "inet ")+" of nftables"), findErr
	}
	for _, name := range allLinks {
		_, exists, findErr := links.Find(name)
		if exists {
			left = append(left, "link "+name)
		}
		err = errors.Join(err, findErr)
	}
	return left, err
}

// release deletes the lease of this host, so that others can use the subnet before it
// expires. It ignores errors, because etcd may no longer exist.
func (d Flanneld) release(ctx context.Context) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	client, err := d.Etcd.client(ctx)
	if err != nil {
		return
	}
	defer client.Close()
	own, _ := leasesOf(ctx, client, d.PublicIP)
	for _, l := range own {
		_, _ = client.Delete(ctx, l.key)
	}
}
