package docker

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/containerd/errdefs"
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
	if errdefs.IsNotFound(err) {
		return n, false, nil
	}
	return found.Network, err == nil, err
}

// Networks lists the engine's networks.
func (d *Engine) Networks(ctx context.Context) ([]Network, error) {
	list, err := d.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, err
	}
	var all []Network
	for _, n := range list.Items {
		found := Network{Name: n.Name, Cluster: n.Labels[ClusterLabel], Options: n.Options}
		for _, c := range n.IPAM.Config {
			found.Subnets = append(found.Subnets, c.Subnet)
		}
		all = append(all, found)
	}
	return all, nil
}

// MakeNetwork makes a bridge network of a cluster; its gateway is the first
// address of the subnet.
func (d *Engine) MakeNetwork(ctx context.Context, n Network) error {
	subnet := n.Subnets[0].Masked()
	_, err := d.NetworkCreate(ctx, n.Name, client.NetworkCreateOptions{
		Driver: "bridge",
		IPAM:   &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet, Gateway: subnet.Addr().Next()}}},
		Labels: map[string]string{OurLabel: "cluster", ClusterLabel: n.Cluster},
	})
	if err != nil {
		return fmt.Errorf("make network %s: %w", n.Name, err)
	}
	return nil
}

// RemoveNetwork removes a network. A missing network is not an error.
func (d *Engine) RemoveNetwork(ctx context.Context, name string) error {
	_, err := d.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
	return doing("remove network", name, gone(err))
}

func (d *Engine) removeNetworks(ctx context.Context, filter client.Filters) error {
	list, err := d.NetworkList(ctx, client.NetworkListOptions{Filters: filter})
	if err != nil {
		return err
	}
	return Together(list.Items, func(n network.Summary) error { return d.RemoveNetwork(ctx, n.ID) })
}
