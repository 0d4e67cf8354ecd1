// Package machines contains the parts of a cluster of containers on its Docker engine: containers
// that behave as machines, volumes, notes, prepared disks, images and the network.
package machines

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Objects are the Docker objects of a cluster on its engine. The cluster need not exist.
type Objects struct {
	Engine   *docker.Engine
	Name     string
	Machines Machines
	Volumes  Volumes
	Notes    VolumeNotes
	Disks    PreparedDisks

	helpers helpers
}

// Of returns the objects of the cluster of this name on an engine.
func Of(engine *docker.Engine, name string) Objects {
	h := helpers{engine, name}
	volumes := Volumes{engine, name, h}
	return Objects{
		Engine: engine, Name: name, Machines: Machines{engine, volumes}, Volumes: volumes,
		Notes: VolumeNotes{name, volumes}, Disks: PreparedDisks{engine, name}, helpers: h,
	}
}

// clusterOwner is the value of docker.OurLabel for machines, volumes and networks.
const clusterOwner = "cluster"

// ofCluster selects the objects of a cluster.
func ofCluster(name string) client.Filters {
	return client.Filters{}.Add("label", docker.ClusterLabel+"="+name)
}

func clusterLabels(name string) map[string]string {
	return map[string]string{docker.OurLabel: clusterOwner, docker.ClusterLabel: name}
}

// EngineContainer is any container of the engine, a node or not.
type EngineContainer struct {
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

// All lists all containers of the engine, except helper containers of clusters.
func All(ctx context.Context, engine *docker.Engine) (all []EngineContainer, err error) {
	list, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true})
	for _, c := range list.Items {
		cluster, name := c.Labels[docker.ClusterLabel], docker.NameOf(c)
		if cluster != "" && c.Labels[docker.OurLabel] != clusterOwner {
			continue
		}
		if cluster != "" && !containerName.MatchString(name) {
			return nil, fmt.Errorf("the engine has a host of cluster %s with the name %q, which Docker gives to no "+
				"container",
				cluster, name)
		}
		m := EngineContainer{
			ID: c.ID, Name: name, Cluster: cluster, State: string(c.State), Image: c.Image, Created: c.Created,
			Labels: c.Labels,
		}
		if c.NetworkSettings != nil && cluster != "" {
			m.Addr = docker.AddrIn(c.NetworkSettings.Networks)
		}
		all = append(all, m)
	}
	return all, err
}

// Remove removes all containers, then volumes, networks and images of the cluster, also
// after an error. It removes the note with the key last only after everything else.
func (c Objects) Remove(ctx context.Context, last string) error {
	err := errors.Join(removeContainers(ctx, c.Engine, ofCluster(c.Name)), c.removeVolumes(ctx, last),
		c.removeNetworks(ctx), c.Engine.Images().RemoveAll(ctx, ofCluster(c.Name), docker.Gone))
	if err != nil {
		return err
	}
	return c.Notes.Forget(ctx, last)
}

func removeContainers(ctx context.Context, engine *docker.Engine, filter client.Filters) error {
	list, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	return errors.Join(err, host.Together(list.Items, func(found container.Summary) error {
		return engine.RemoveContainer(ctx, found.ID)
	}))
}

func (c Objects) removeVolumes(ctx context.Context, lastNote string) error {
	all, err := c.Volumes.List(ctx)
	others := slices.DeleteFunc(all, func(v Volume) bool { return v.Labels[noteKeyLabel] == lastNote })
	return errors.Join(err, host.Together(others, func(v Volume) error { return c.Volumes.Remove(ctx, v.Name) }))
}

// Images lists the references of the images that were made of the cluster's machines.
func (c Objects) Images(ctx context.Context) ([]string, error) {
	return c.Engine.Images().Matching(ctx, ofCluster(c.Name))
}

// MakeNetwork makes a bridge network of the cluster, whose gateway is its first address.
func (c Objects) MakeNetwork(ctx context.Context, name string, subnet netip.Prefix) error {
	subnet = subnet.Masked()
	_, err := c.Engine.NetworkCreate(ctx, name, client.NetworkCreateOptions{
		Driver: "bridge",
		IPAM:   &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet, Gateway: subnet.Addr().Next()}}},
		Labels: clusterLabels(c.Name),
	})
	return step.Wrap(err, "make network %s", name)
}

// RemoveNetwork removes a network. A missing network is not an error.
func (c Objects) RemoveNetwork(ctx context.Context, name string) error {
	_, err := c.Engine.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
	return step.Wrap(docker.Gone(err), "remove network %s", name)
}

func (c Objects) removeNetworks(ctx context.Context) error {
	list, err := c.Engine.NetworkList(ctx, client.NetworkListOptions{Filters: ofCluster(c.Name)})
	return errors.Join(err, host.Together(list.Items, func(n network.Summary) error {
		return c.RemoveNetwork(ctx, n.ID)
	}))
}
