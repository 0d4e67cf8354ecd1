package main

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// fleetOptions says in the words of pkg/cluster what the settings mean.
func fleetOptions(cfg config.Config, origins config.Origins) (cluster.Options, error) {
	subnet, err := netip.ParsePrefix(cfg.DindSubnet)
	if err != nil {
		return cluster.Options{}, err
	}
	return cluster.Options{
		Manifests: manifestsOf(&cfg),
		Name:      cfg.Name, Masters: cfg.Masters, Workers: cfg.Workers, Nodes: nodeSpecs(cfg.Nodes),
		Subnet: subnet, HostImage: cfg.HostImage, Bundle: cfg.Bundle,
		Engine:     docker.Choice{Address: cfg.DockerHost, Context: cfg.DockerContext},
		KeepImages: cfg.KeepImages,
		APIPort:    cfg.APIServerPort, Publish: origins["apiServerPort"].Source != config.FromDefault,
		MasterArgs: cfg.Args(config.Master, origins), WorkerArgs: cfg.Args(config.Worker, origins),
	}, nil
}

func nodeSpecs(nodes []config.Node) []cluster.Spec {
	var all []cluster.Spec
	for _, n := range nodes {
		spec := nodeSpec(n)
		for i := range n.Count {
			one := spec
			if n.Name != "" && n.Count > 1 {
				one.Name = fmt.Sprintf("%s-%d", n.Name, i+1)
			}
			all = append(all, one)
		}
	}
	return all
}

func nodeSpec(n config.Node) cluster.Spec {
	role := cluster.Worker
	if n.Role == config.RoleMaster {
		role = cluster.Master
	}
	return cluster.Spec{
		Name: n.Name, Role: role, HostImage: n.HostImage, Args: n.Args(),
		NanoCPUs: quantity(n.Own.NodeCPUs).ScaledValue(resource.Nano), Memory: quantity(n.Own.NodeMemory).Value(), Disk: quantity(n.Own.NodeDisk).Value(),
	}
}

// quantity is zero for nothing; the rest was checked with the settings.
func quantity(text string) *resource.Quantity {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return &resource.Quantity{}
	}
	return &q
}
