package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Attachment is the place of a container that serves a fleet, on the network
// of its machines.
type Attachment struct {
	Fleet, Network string
	Addr           netip.Addr
	Ports          map[uint16]uint16 `json:"-"` // port of the container: port on the engine's machine
}

// apply puts the container there. Nothing in it can be written, and its process
// is no root: it needs neither.
func (a Attachment) apply(o *client.ContainerCreateOptions, publishOn netip.Addr) {
	if a.Network == "" {
		return
	}
	o.Config.Labels[FleetLabel] = a.Fleet
	o.Config.User = "65534:65534"
	o.HostConfig.ReadonlyRootfs = true
	o.HostConfig.NetworkMode = container.NetworkMode(a.Network)
	o.Config.ExposedPorts, o.HostConfig.PortBindings = published(a.Ports, publishOn)
	o.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		a.Network: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: a.Addr}},
	}}
}

// ErrPortTaken says that a port of the engine's machine is in use.
var ErrPortTaken = errors.New("the port is taken")

func published(ports map[uint16]uint16, on netip.Addr) (network.PortSet, network.PortMap) {
	exposed, published := network.PortSet{}, network.PortMap{}
	for inside, outside := range ports {
		port, _ := network.PortFrom(inside, network.TCP)
		exposed[port] = struct{}{}
		published[port] = []network.PortBinding{{HostIP: on, HostPort: strconv.Itoa(int(outside))}}
	}
	return exposed, published
}

// portError knows the two forms in which an engine says that a port is in use:
// by another container, and by anybody else.
func portError(err error) error {
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "port is already allocated") || strings.Contains(err.Error(), "address already in use") {
		return fmt.Errorf("%w: %w", ErrPortTaken, err)
	}
	return err
}

// publishOn keeps ports to this machine where that is the engine's; to us,
// another machine's loopback is out of reach.
func (d *Engine) publishOn() netip.Addr {
	if d.Remote() {
		return netip.IPv4Unspecified()
	}
	return netip.MustParseAddr("127.0.0.1")
}

// Attached is a container that serves a fleet, as it is now.
type Attached struct {
	Attachment
	Running bool
}

// Attached returns a container that serves a fleet; ok is false if there is
// none.
func (d *Engine) Attached(ctx context.Context, fleet, name string) (at Attached, ok bool, err error) {
	now, err := d.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	c := now.Container
	if errdefs.IsNotFound(err) || err == nil && c.Config.Labels[FleetLabel] != fleet {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	at.Running, at.Fleet, at.Network = c.State.Running, fleet, string(c.HostConfig.NetworkMode)
	at.Addr, at.Ports = machineAddr(c.NetworkSettings.Networks), map[uint16]uint16{}
	for inside, outside := range c.HostConfig.PortBindings {
		for _, one := range outside {
			port, err := strconv.ParseUint(one.HostPort, 10, 16)
			if err != nil {
				return at, false, err
			}
			at.Ports[inside.Num()] = uint16(port)
		}
	}
	return at, true, nil
}
