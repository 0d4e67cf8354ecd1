// Package plan says what happens on a host and in which order: the plans of a
// master and of a worker, which turndown walks backwards and status only looks
// at. It is the one place that knows more than one domain package; it hands
// what one of them finds out (the lease, a socket, a certificate) to the next.
package plan

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Binary is where a host keeps the program that made it, for its boot unit.
const Binary = host.StateDir + "/bin/kube-bootstrap"

const mainSocket = "/run/docker.sock"

// Host is this machine with the settings it shall have.
type Host struct {
	Config config.Config
	Files  host.Files
	Units  host.Units

	saved    Saved
	given    config.Origins      // where the settings come from; nil: all are in force
	refused  []config.Difference // settings that were given but cannot change
	registry *registry.Registry  // nil: none
	// registryLost is why the registry that this host was set up with is not known.
	registryLost error
	pushed       image.Versions // versions of the bundle in the registry, once Resolve has read them
	byHand       bool           // the images were loaded into the main Docker by hand
	versions     image.Versions
	images       []image.Image
	answers      []answer // results of the questions of Resolve
	loads        *bundle.Broadcast
	downloads    *downloads
	join         *join.Joining
	detectErr    error
}

// Open completes the settings in force from this machine: host name, address
// and architecture if they are not given, and the versions of components. It
// changes nothing.
func Open(cfg config.Config) (*Host, error) { return OpenWith(cfg, nil) }

// OpenWith is Open with settings that may differ from those in force: given
// says where each comes from. Preflight refuses a change of a setting that
// cannot change.
func OpenWith(cfg config.Config, given config.Origins) (*Host, error) {
	h := &Host{Config: cfg, given: given, Units: host.OpenUnits(), loads: &bundle.Broadcast{}, downloads: &downloads{}}
	var err error
	if h.saved, err = ReadSaved(h.Files); err != nil {
		return nil, err
	}
	if h.saved.Lost != nil {
		if given != nil && !given.FromFile() {
			return nil, h.saved.Lost
		}
		h.saved.Config = cfg
	}
	h.Config, h.refused = h.saved.Keep(cfg, given)
	if h.Config.HostName == "" {
		if h.Config.HostName, err = host.HostName(); err != nil {
			return nil, err
		}
	}
	h.detectAddress()
	h.keepJoined()
	h.join = h.joining()
	if err := h.findRegistry(); err != nil {
		return nil, err
	}
	return h, h.useCatalogue()
}

// detectAddress detects the address if it is not given. Another interface means
// another address.
func (h *Host) detectAddress() {
	moved := h.given["netInterface"].Source > config.FromHost && h.given["ipAddress"].Source <= config.FromHost && !h.keepsAddress()
	if h.Config.IPAddress != "" && !moved {
		return
	}
	link, ok, err := h.link()
	switch {
	case err != nil:
		h.detectErr = err
	case !ok || len(link.Addrs) == 0:
		h.detectErr = fmt.Errorf("interface %s has no IPv4 address", h.Config.NetInterface)
	default:
		h.Config.NetInterface = link.Name
		h.Config.IPAddress = link.Addrs[0].Addr().String()
	}
}

func (h *Host) link() (host.Link, bool, error) {
	if h.Config.NetInterface != "" {
		return host.FindLink(h.Config.NetInterface)
	}
	link, err := host.DefaultLink()
	return link, err == nil, err
}

// mainDocker and bootstrapDocker open the two engines when they are needed,
// since neither need run while the plan is made.
func mainDocker() (*docker.Engine, error) { return docker.Open(mainSocket) }

func bootstrapDocker() (*docker.Engine, error) { return docker.Open(bootstrapdocker.Socket) }

func (h *Host) lease() (flannel.Lease, error) {
	return flannel.ReadLease(h.Files, h.Config.FlannelSubnetDir)
}

func (h *Host) timeout() time.Duration { return h.Config.TimeoutForServices }

// limited gives waits and requests outside of steps the same limit as in steps.
func (h *Host) limited(ctx context.Context) context.Context { return step.WithLimit(ctx, h.timeout()) }

func mustPrefix(cidr string) netip.Prefix {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Prefix{} // validation of the config comes before any plan
	}
	return p.Masked()
}

// RestartsDocker reports whether a run restarts Docker, or was cut short when it
// did. Docker starts only when Boot has ended.
func RestartsDocker() bool { return maindocker.Restarting(host.Files{}) }

// Boot brings daemon.json, the CNI config and the firewall in agreement with
// the lease while Docker is about to start. It never starts or stops Docker.
func (h *Host) Boot(ctx context.Context) error {
	ctx = h.limited(ctx)
	agent := h.kubelet(h.saved.Role)
	if err := errors.Join(agent.ShareMounts(), agent.RestoreServiceRoute(mustPrefix(h.Config.ServiceNetwork))); err != nil {
		return err
	}
	if !h.ownNetwork() {
		return nil
	}
	if err := h.bridge().Boot(ctx); err != nil {
		return err
	}
	return h.cni().Apply(ctx)
}
