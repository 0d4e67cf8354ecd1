package docker

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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
	return found.Network, err == nil, gone(err)
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

// MakeNetwork makes a bridge network of the cluster, whose gateway is its first address.
func (c Cluster) MakeNetwork(ctx context.Context, name string, subnet netip.Prefix) error {
	subnet = subnet.Masked()
	_, err := c.api.NetworkCreate(ctx, name, client.NetworkCreateOptions{
		Driver: "bridge",
		IPAM:   &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet, Gateway: subnet.Addr().Next()}}},
		Labels: map[string]string{OurLabel: clusterOwner, ClusterLabel: c.name},
	})
	return step.Wrap(err, "make network %s", name)
}

// RemoveNetwork removes a network. A missing network is not an error.
func (c Cluster) RemoveNetwork(ctx context.Context, name string) error {
	_, err := c.api.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
	return step.Wrap(gone(err), "remove network %s", name)
}

func (c Cluster) removeNetworks(ctx context.Context) error {
	list, err := c.api.NetworkList(ctx, client.NetworkListOptions{Filters: c.filter()})
	return errors.Join(err, host.Together(list.Items, func(n network.Summary) error { return c.RemoveNetwork(ctx, n.ID) }))
}

// Port is a port of the host that leads to a container.
type Port struct {
	Container string
	Port      uint16
	Protocol  string // "tcp", "udp", "sctp"
}

// PublishedPort is a port of the engine's machine that leads to a port of a container.
type PublishedPort struct {
	HostIP         netip.Addr
	HostPort, Port uint16
	Protocol       string // "tcp" or "udp"
}

func published(all []PublishedPort) (network.PortSet, network.PortMap) {
	exposed, bindings := network.PortSet{}, network.PortMap{}
	for _, p := range all {
		port, _ := network.PortFrom(p.Port, network.IPProtocol(p.Protocol))
		exposed[port] = struct{}{}
		bindings[port] = append(bindings[port], network.PortBinding{HostIP: p.HostIP, HostPort: strconv.Itoa(int(p.HostPort))})
	}
	return exposed, bindings
}

// Published returns the IPv4 ports that running containers of a network publish.
func (d *Engine) Published(ctx context.Context, network string) (all []Port, err error) {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{})
	for _, c := range list.Items {
		if c.NetworkSettings == nil || c.NetworkSettings.Networks[network] == nil {
			continue
		}
		for _, p := range c.Ports {
			if p.PublicPort != 0 && p.IP.Is4() {
				all = append(all, Port{strings.TrimPrefix(c.Names[0], "/"), p.PublicPort, p.Type})
			}
		}
	}
	return all, noAnswer(err)
}
