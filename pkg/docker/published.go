package docker

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Port is a port of the host that leads to a container.
type Port struct {
	Container string
	Port      uint16
	Protocol  string // "tcp", "udp", "sctp"
}

// PublishedPort is a port of the engine's machine that leads to a port of a
// container.
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
func (d *Engine) Published(ctx context.Context, network string) ([]Port, error) {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{})
	if err != nil {
		return nil, noAnswer(err)
	}
	var all []Port
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
	return all, nil
}
