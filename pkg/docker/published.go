package docker

import (
	"context"
	"strings"

	"github.com/moby/moby/client"
)

// Port is a port of the host that leads to a container.
type Port struct {
	Container string
	Port      uint16
	Protocol  string // "tcp", "udp", "sctp"
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
