package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// FleetLabel marks containers, volumes and networks that stand in for machines
// of a fleet; its value is the fleet's name.
const FleetLabel = "kube-bootstrap.dev/cluster"

// ImportImage makes an image out of a root file system in a tar stream.
func (d *Docker) ImportImage(ctx context.Context, ref string, rootfs io.Reader) error {
	answer, err := d.ImageImport(ctx, client.ImageImportSource{Source: rootfs, SourceName: "-"}, ref, client.ImageImportOptions{})
	if err != nil {
		return fmt.Errorf("import image %s: %w", ref, err)
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	if err == nil && strings.Contains(string(text), `"error"`) {
		err = errors.New(string(text))
	}
	return err
}

// Network is a network on an engine.
type Network struct {
	Name    string
	Fleet   string // the fleet it was made for; "" if it is not ours
	Subnets []netip.Prefix
	Options map[string]string // of its driver, as the engine tells them
}

// Networks lists the engine's networks.
func (d *Docker) Networks(ctx context.Context) ([]Network, error) {
	list, err := d.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, err
	}
	var all []Network
	for _, n := range list.Items {
		found := Network{Name: n.Name, Fleet: n.Labels[FleetLabel], Options: n.Options}
		for _, c := range n.IPAM.Config {
			found.Subnets = append(found.Subnets, c.Subnet)
		}
		all = append(all, found)
	}
	return all, nil
}

// MakeNetwork makes a bridge network of a fleet; its gateway is the first
// address of the subnet.
func (d *Docker) MakeNetwork(ctx context.Context, n Network) error {
	subnet := n.Subnets[0].Masked()
	_, err := d.NetworkCreate(ctx, n.Name, client.NetworkCreateOptions{
		Driver: "bridge",
		IPAM:   &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet, Gateway: subnet.Addr().Next()}}},
		Labels: map[string]string{OurLabel: "cluster", FleetLabel: n.Fleet},
	})
	if err != nil {
		return fmt.Errorf("make network %s: %w", n.Name, err)
	}
	return nil
}

// FoundMachine is a container on the engine that stands in for a machine, or
// one that has such a name.
type FoundMachine struct {
	ID      string
	Name    string
	Fleet   string // "" if it is not ours
	State   string // "running", "exited", ...
	Image   string
	Addr    netip.Addr
	Created int64
	Ports   map[uint16]uint16 // port of the machine: port on this host
	Labels  map[string]string
}

// Machines lists all containers of the engine, ours and others, but for those
// that only help for a moment.
func (d *Docker) Machines(ctx context.Context) ([]FoundMachine, error) {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, err
	}
	var all []FoundMachine
	for _, c := range list.Items {
		if c.Labels[OurLabel] == helper {
			continue
		}
		m := FoundMachine{ID: c.ID, Fleet: c.Labels[FleetLabel], State: string(c.State), Image: c.Image, Created: c.Created, Labels: c.Labels, Ports: map[uint16]uint16{}}
		if len(c.Names) > 0 {
			m.Name = strings.TrimPrefix(c.Names[0], "/")
		}
		if c.NetworkSettings != nil && m.Fleet != "" {
			m.Addr = machineAddr(c.NetworkSettings.Networks)
		}
		for _, p := range c.Ports {
			m.Ports[p.PrivatePort] = p.PublicPort
		}
		all = append(all, m)
	}
	return all, nil
}

// machineAddr prefers the address that was asked for: a machine that is
// switched off has no other.
func machineAddr(networks map[string]*network.EndpointSettings) netip.Addr {
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

// RemoveFleet removes all containers, then volumes, networks and images of a
// fleet. It goes on after a failure and is harmless when nothing is left.
func (d *Docker) RemoveFleet(ctx context.Context, fleet string) error {
	ours := fleetFilter(FleetLabel, fleet)
	return errors.Join(
		d.removeContainers(ctx, ours), d.removeVolumes(ctx, ours), d.removeNetworks(ctx, ours), d.removeImages(ctx, ours),
	)
}

func (d *Docker) removeContainers(ctx context.Context, filter client.Filters) error {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		return err
	}
	var ids []string
	for _, c := range list.Items {
		ids = append(ids, c.ID)
	}
	return together(ids, func(id string) error { return d.removeContainer(ctx, id) })
}

func (d *Docker) removeVolumes(ctx context.Context, filter client.Filters) error {
	list, err := d.VolumeList(ctx, client.VolumeListOptions{Filters: filter})
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range list.Items {
		_, err := d.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true})
		errs = append(errs, gone(err))
	}
	return errors.Join(errs...)
}

func (d *Docker) removeNetworks(ctx context.Context, filter client.Filters) error {
	list, err := d.NetworkList(ctx, client.NetworkListOptions{Filters: filter})
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range list.Items {
		_, err := d.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		errs = append(errs, gone(err))
	}
	return errors.Join(errs...)
}

func gone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

func hashOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and bools only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
