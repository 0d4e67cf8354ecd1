package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Nobody is the user, and the group, of the containers with an Attachment.
const Nobody = 65534

// Attachment attaches a helper container of a cluster to the network of its machines.
type Attachment struct {
	Cluster, Network string
	Addr             netip.Addr
	Ports            map[uint16]uint16 `json:"-"` // port of the container: port on the engine's machine
	HostIP           netip.Addr        `json:"-"` // address of the engine's machine on which Ports are published
}

// apply also confines the container: a read-only root file system, an unprivileged user.
func (a Attachment) apply(o *client.ContainerCreateOptions) {
	if a.Network == "" {
		return
	}
	o.Config.Labels[ClusterLabel] = a.Cluster
	o.Config.User = fmt.Sprintf("%[1]d:%[1]d", Nobody)
	o.HostConfig.ReadonlyRootfs = true
	o.HostConfig.NetworkMode = container.NetworkMode(a.Network)
	o.Config.ExposedPorts, o.HostConfig.PortBindings = PortBindings(a.published())
	o.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		a.Network: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: a.Addr}},
	}}
}

// ErrPortTaken is the error that a port of the engine's machine is in use,
// ErrNoHostIP that this machine does not have the address HostIP.
var (
	ErrPortTaken = errors.New("the port is taken")
	ErrNoHostIP  = errors.New("the engine's machine does not have this address")
)

func (a Attachment) published() (all []PortMapping) {
	for inside, outside := range a.Ports {
		all = append(all, PortMapping{HostIP: a.HostIP, HostPort: outside, Port: inside, Protocol: string(network.TCP)})
	}
	return all
}

// portError adds the kind to the messages of an engine about a port that another container
// or any other process has, and about a foreign address.
func portError(err error) error {
	if err == nil {
		return nil
	}
	for message, kind := range map[string]error{
		"port is already allocated": ErrPortTaken, "address already in use": ErrPortTaken,
		"cannot assign requested address": ErrNoHostIP,
	} {
		if strings.Contains(err.Error(), message) {
			return fmt.Errorf("%w: %w", kind, err)
		}
	}
	return err
}

// PublishAddr returns the address of the engine's machine on which ports are published:
// loopback on this machine, otherwise the address by which this machine reaches the engine,
// or the unspecified one if it cannot be resolved, as behind a jump host.
func (d *Engine) PublishAddr(ctx context.Context) (netip.Addr, error) {
	name, err := d.MachineName(ctx)
	switch {
	case err != nil:
		return netip.Addr{}, err
	case name == "":
		return netip.MustParseAddr("127.0.0.1"), nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", name)
	if err != nil || len(found) == 0 {
		return netip.IPv4Unspecified(), nil
	}
	return found[0].Unmap(), nil
}
