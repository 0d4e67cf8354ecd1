package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// ClusterLabel marks what belongs to a cluster. Its value is the name of the cluster.
const ClusterLabel = "kube-bootstrap.dev/cluster"

// Cluster is a cluster on an engine: its notes, volumes, networks and images, and
// the containers that serve it.
type Cluster struct {
	api  *client.Client
	name string
}

// Cluster returns the cluster of that name, which need not exist.
func (d *Engine) Cluster(name string) Cluster { return Cluster{d.Client, name} }

// filter selects the objects of the cluster.
func (c Cluster) filter() client.Filters {
	return client.Filters{}.Add("label", ClusterLabel+"="+c.name)
}

// FoundMachine is any container of the engine, a node or not.
type FoundMachine struct {
	ID      string
	Name    string
	Cluster string // "" if it belongs to no cluster
	State   string // "running", "exited", ...
	Image   string
	Addr    netip.Addr
	Created int64
	Labels  map[string]string
}

// containerName matches the names that Docker gives to containers. They become a part of paths on
// this machine, and an attacker may control a remote engine.
var containerName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// clusterOwner is the value of OurLabel for machines, volumes and networks.
const clusterOwner = "cluster"

// Machines lists all containers of the engine, except helper containers of clusters.
func (d *Engine) Machines(ctx context.Context) (all []FoundMachine, err error) {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{All: true})
	for _, c := range list.Items {
		cluster := c.Labels[ClusterLabel]
		if cluster != "" && c.Labels[OurLabel] != clusterOwner {
			continue
		}
		if cluster != "" && !containerName.MatchString(nameOf(c)) {
			return nil, fmt.Errorf("the engine has a host of cluster %s with the name %q, which Docker gives to no container", cluster, nameOf(c))
		}
		m := FoundMachine{
			ID: c.ID, Name: nameOf(c), Cluster: cluster, State: string(c.State), Image: c.Image, Created: c.Created, Labels: c.Labels,
		}
		if c.NetworkSettings != nil && cluster != "" {
			m.Addr = machineAddr(c.NetworkSettings.Networks)
		}
		all = append(all, m)
	}
	return all, err
}

// nameOf returns the name of a container, or its ID if it has none.
func nameOf(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID[:min(12, len(c.ID))]
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// machineAddr prefers the configured address, the only one of a stopped container.
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

// Remove removes all containers, then volumes, networks and images of the cluster, also
// after an error. It removes the note with the key last only after everything else.
func (c Cluster) Remove(ctx context.Context, last string) error {
	err := errors.Join(c.removeContainers(ctx, c.filter()), c.removeVolumes(ctx, last), c.removeNetworks(ctx), c.removeImages(ctx))
	if err != nil {
		return err
	}
	return c.Forget(ctx, last)
}

func (c Cluster) removeContainers(ctx context.Context, filter client.Filters) error {
	list, err := c.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	return errors.Join(err, host.Together(list.Items, func(found container.Summary) error { return removeContainer(ctx, c.api, found.ID) }))
}

func (c Cluster) removeVolumes(ctx context.Context, lastNote string) error {
	all, err := c.Volumes(ctx)
	others := slices.DeleteFunc(all, func(v Volume) bool { return v.Labels[noteKeyLabel] == lastNote })
	return errors.Join(err, host.Together(others, func(v Volume) error { return c.RemoveVolume(ctx, v.Name) }))
}

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers, bools and addresses only
	}
	return data
}
