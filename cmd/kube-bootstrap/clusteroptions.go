package main

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// toClusterOptions says in the words of pkg/cluster what the settings mean.
func toClusterOptions(cfg config.Config, origins config.Origins) (cluster.Options, error) {
	subnet, err := netip.ParsePrefix(cfg.DindSubnet)
	if err != nil {
		return cluster.Options{}, err
	}
	return cluster.Options{
		Options: session.Options{Name: cfg.Name, Engine: docker.Choice{Address: cfg.DockerHost, Context: cfg.DockerContext}},
		Request: topology.Request{
			Masters: cfg.Masters, Workers: cfg.Workers, Nodes: nodeSpecs(cfg.Nodes),
			Subnet: subnet, HostImage: cfg.HostImage,
		},
		Manifests:  manifestsOf(&cfg),
		Bundle:     cfg.Bundle,
		KeepImages: cfg.KeepImages,
		APIPort:    cfg.APIServerPort, Publish: origins["apiServerPort"].Source != config.FromDefault,
		MasterArgs: cfg.Args(config.Master, origins), WorkerArgs: cfg.Args(config.Worker, origins),
	}, nil
}

func nodeSpecs(nodes []config.Node) []topology.Spec {
	var all []topology.Spec
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

func nodeSpec(n config.Node) topology.Spec {
	role := topology.Worker
	if n.Role == config.RoleMaster {
		role = topology.Master
	}
	return topology.Spec{
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
