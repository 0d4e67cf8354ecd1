// Package plan contains the plans of a control plane and a worker: all steps
// in their order. turndown undoes them in reverse, and status only checks
// them. It is the only package that knows several domain packages; it passes
// results of one, such as the lease, to others.
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

// Binary is the copy of this program on a host, for its units.
const Binary = host.StateDir + "/bin/kube-bootstrap"

const mainSocket = "/run/docker.sock"

// Host is this machine with its desired settings.
type Host struct {
	Config config.Config
	Files  host.Files
	Units  host.Units

	saved    Saved
	given    config.Origins      // where each setting comes from; nil: all are in force
	refused  []config.Difference // given settings that cannot change
	registry *registry.Registry  // nil: no registry
	// registryLost is the error of a saved registry configuration that is
	// damaged.
	registryLost error
	pushed       image.Versions // of the bundle in the registry; set by Resolve
	byHand       bool           // the user has loaded the images into the main Docker
	versions     image.Versions
	images       []image.Image
	answers      []answer // set by Resolve
	loads        *bundle.Broadcast
	downloads    *downloads
	join         *join.Joining
	detectErr    error
}

// Open returns the host with its settings in force. It detects host name,
// address and architecture if they are not set, and the versions of the
// components. It changes nothing.
func Open(cfg config.Config) (*Host, error) { return OpenWith(cfg, nil) }

// OpenWith is Open for a run whose settings may differ from those in force.
// given states where each setting comes from. Preflight refuses to change a
// setting that cannot change.
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

// detectAddress detects the address if it is not set, or if the user sets
// another interface.
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

// mainDocker and bootstrapDocker open the two engines on use, because they
// may not run yet when the plan is made.
func mainDocker() (*docker.Engine, error) { return docker.Open(mainSocket) }

func bootstrapDocker() (*docker.Engine, error) { return docker.Open(bootstrapdocker.Socket) }

func (h *Host) lease() (flannel.Lease, error) {
	return flannel.ReadLease(h.Files, h.Config.FlannelSubnetDir)
}

func (h *Host) timeout() time.Duration { return h.Config.TimeoutForServices }

// limited applies the limit of steps to waits and requests outside of steps.
func (h *Host) limited(ctx context.Context) context.Context { return step.WithLimit(ctx, h.timeout()) }

func mustPrefix(cidr string) netip.Prefix {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Prefix{} // the configuration was validated before
	}
	return p.Masked()
}

// RestartsDocker reports whether a run is restarting Docker, or was
// interrupted while it did. Docker waits for the end of Boot in its start.
func RestartsDocker() bool { return maindocker.Restarting(host.Files{}) }

// Boot adapts daemon.json, the CNI configuration and the firewall to the
// lease before Docker starts. It never starts or stops Docker.
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
