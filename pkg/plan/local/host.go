// Package local determines everything that is known about this host before a
// run: its settings, those in force, the versions, the images and the answers of
// other machines. Plans, checks and operations begin with a local.Host, see parts.New.
package local

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/peer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// Binary is the copy of this program on a host, for its units.
const Binary = host.StateDir + "/bin/kube-bootstrap"

// Host is this machine with its desired settings.
type Host struct {
	Config config.Config
	Files  host.Files
	Units  initsystem.Units

	Saved    Saved
	Upgrade  upgrade.Record // unfinished, with programs of both versions; the zero Record: none
	recorded upgrade.Record // the record on this host, also of an upgrade that this run ends
	// UpgradeLost is the problem that the record of an unfinished upgrade is damaged.
	UpgradeLost error
	Given       config.Origins      // where each setting comes from; nil: all are in force
	Refused     []config.Difference // given settings that cannot change
	Registry    *registry.Registry  // nil: no registry
	// RegistryLost is the problem that the saved registry configuration is
	// damaged.
	RegistryLost error
	pushed       image.Versions // of the bundle in the registry; set by Resolve
	ByHand       bool           // the user may have loaded the images into the main Docker
	Supply       Supply         // set by Resolve
	key          []byte         // of those who sign bundles, from the cluster; set by Resolve
	Offer        *peer.Offer    // the bundle of a control plane, if this host has none; set by Resolve
	OfferErr     error          // why no control plane offers one; set by Resolve
	Versions     image.Versions
	Images       []image.Image
	Answers      []Answer // set by Resolve
	Loads        *bundle.Broadcast
	Downloads    *Downloads
	Join         *join.Joining
	Restoring    bool // a backup is restored on this host
	Recovering   bool // this host continues without the other control planes
	DetectErr    error
	detected     []string // the settings that were not set, see detect
}

// Open returns the host with its settings in force. It detects host name,
// address and architecture if they are not set, and the versions of the
// components. It changes nothing.
func Open(cfg config.Config) (*Host, error) { return OpenWith(cfg, nil) }

// OpenWith is Open for a run whose settings may differ from those in force.
// given states where each setting comes from. Preflight refuses to change a
// setting that cannot change.
func OpenWith(cfg config.Config, given config.Origins) (*Host, error) {
	files := host.Files{}
	saved, err := ReadSaved(files)
	if err != nil {
		return nil, err
	}
	return open(files, saved, cfg, given)
}

func open(files host.Files, saved Saved, cfg config.Config, given config.Origins) (*Host, error) {
	h := &Host{
		Files: files, Saved: saved, Config: cfg, Given: given, Units: initsystem.Open(),
		Loads: &bundle.Broadcast{}, Downloads: &Downloads{},
	}
	if h.Saved.Lost != nil {
		if given != nil && !given.FromFile() {
			return nil, h.Saved.Lost
		}
		h.Saved.Config = cfg
	}
	h.Config, h.Refused = h.Saved.WithInForce(cfg, given)
	if err := readUpgrade(h); err != nil {
		return nil, err
	}
	if err := detect(h); err != nil {
		return nil, err
	}
	h.keepJoined()
	h.Join = joining(h)
	if err := h.findRegistry(); err != nil {
		return nil, err
	}
	return h, h.UseCatalogue()
}

// Lease returns the lease of this host in its file on disk.
func (h *Host) Lease() (subnet.Lease, error) {
	return subnet.Read(h.Files, h.Config.FlannelSubnetDir)
}

// Timeout returns the limit of a step.
func (h *Host) Timeout() time.Duration { return h.Config.TimeoutForServices }

// Limited applies the limit of steps to waits and requests outside of steps.
func (h *Host) Limited(ctx context.Context) context.Context { return step.WithLimit(ctx, h.Timeout()) }

// IP returns the address of this host as text; "" before it is known.
func (h *Host) IP() string { return addresses.Text(h.Config.IPAddress) }

// CRISocket returns the socket of the containerd that runs the pods.
func (h *Host) CRISocket() containerd.Socket {
	return cmp.Or(containerd.Socket(h.Config.CRISocket), containerd.DefaultSocket)
}

// ManagesNetwork reports whether pods are attached to docker0. Otherwise docker0
// does not change, and another CNI plugin provides the pod network.
func (h *Host) ManagesNetwork() bool { return h.Config.CNIPlugin == extension.CNIBridge }

// KeepsAddress reports whether the address of this host cannot change. This
// is so on a control plane, because etcd, its certificates and the other
// hosts refer to the address.
func (h *Host) KeepsAddress() bool { return h.Saved.Role == ControlPlane }

// MainSocket is the socket of the main Docker.
const MainSocket = "/run/docker.sock"

// MainDocker opens the main Docker on use, because it may not run yet when the
// plan is made.
func MainDocker() *docker.Engine { return docker.Open(MainSocket) }

// BootstrapDocker opens the bootstrap Docker, on use too.
func BootstrapDocker() *docker.Engine { return docker.Open(bootstrapdocker.Socket) }

// Balancing returns the settings of the balancer.
func Balancing(h *Host) balancer.Settings {
	return balancer.Settings{
		Own: h.IP(), Port: h.Config.BalancerPort, APIPort: h.Config.APIServerPort,
		ClusterCA: join.ClusterCAFile, EtcdCA: join.EtcdCAFile, Cert: join.FlannelCertFile, Key: join.FlannelKeyFile,
	}
}

// BalancedAPI returns the URL at which this host reaches a ready API server.
func BalancedAPI(h *Host) string { return "https://" + Balancing(h).Address() }

// BalancedEtcd returns the URL at which this host reaches an etcd.
func BalancedEtcd(h *Host) string { return "https://" + Balancing(h).EtcdAddress() }

// Downloads caches the downloads of a run, so that the checked manifest is also
// the applied manifest.
type Downloads struct{ texts sync.Map } // by URL

// Get returns the content of a URL.
func (d *Downloads) Get(ctx context.Context, from string) ([]byte, error) {
	if text, ok := d.texts.Load(from); ok {
		return text.([]byte), nil
	}
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	text, err := addon.Download(ctx, from)
	if err == nil {
		d.texts.Store(from, text)
	}
	return text, err
}
