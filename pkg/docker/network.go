package docker

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Network is a network on an engine.
type Network struct {
	Name    string
	Cluster string // whose network it is; "" for a network of the user
	Subnets []netip.Prefix
	Options map[string]string // of its driver, as the engine tells them
}

// Network returns a network of the engine by name; ok is false if there is none.
func (d *Engine) Network(ctx context.Context, name string) (n network.Inspect, ok bool, err error) {
	found, err := d.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	return found.Network, err == nil, Gone(err)
}

// Networks lists the engine's networks.
func (d *Engine) Networks(ctx context.Context) (all []Network, err error) {
	list, err := d.NetworkList(ctx, client.NetworkListOptions{})
	for _, n := range list.Items {
		found := Network{Name: n.Name, Cluster: n.Labels[ClusterLabel], Options: n.Options}
		for _, c := range n.IPAM.Config {
			found.Subnets = append(found.Subnets, c.Subnet)
		}
		all = append(all, found)
	}
	return all, err
}

// ContainerPort is a port of the host that leads to a container.
type ContainerPort struct {
	Container string
	Port      uint16
	Protocol  string // "tcp", "udp", "sctp"
}

// PortMapping is a port of the engine's machine that leads to a port of a container.
type PortMapping struct {
	HostIP         netip.Addr
	HostPort, Port uint16
	Protocol       string // "tcp" or "udp"
}

// PortBindings returns published ports as the engine takes them.
func PortBindings(all []PortMapping) (network.PortSet, network.PortMap) {
	exposed, bindings := network.PortSet{}, network.PortMap{}
	for _, p := range all {
		port, _ := network.PortFrom(p.Port, network.IPProtocol(p.Protocol))
		exposed[port] = struct{}{}
		bindings[port] = append(bindings[port],
			network.PortBinding{HostIP: p.HostIP, HostPort: strconv.Itoa(int(p.HostPort))})
	}
	return exposed, bindings
}

// Published returns the IPv4 ports that running containers of a network publish.
func (d *Engine) Published(ctx context.Context, network string) (all []ContainerPort, err error) {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{})
	for _, c := range list.Items {
		if c.NetworkSettings == nil || c.NetworkSettings.Networks[network] == nil {
			continue
		}
		for _, p := range c.Ports {
			if p.PublicPort != 0 && p.IP.Is4() {
				all = append(all, ContainerPort{strings.TrimPrefix(c.Names[0], "/"), p.PublicPort, p.Type})
			}
		}
	}
	return all, noAnswer(err)
}

// AddrIn returns the address of a container in its networks. It prefers the configured address,
// the only one of a stopped container.
func AddrIn(networks map[string]*network.EndpointSettings) netip.Addr {
	for _, n := range networks {
		if n != nil && n.IPAMConfig != nil && n.IPAMConfig.IPv4Address.IsValid() {
			return n.IPAMConfig.IPv4Address
		}
		if n != nil {
			return n.IPAddress
		}
	}
	return netip.Addr{}
}
