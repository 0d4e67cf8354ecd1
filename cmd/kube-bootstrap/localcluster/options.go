package localcluster

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/localregistry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func toClusterOptions(cfg config.Config, origins config.Origins) (cluster.Options, error) {
	request := nodesOf(cfg)
	request.Subnet = cfg.DindSubnet.IPv4()
	registry := testhost.RegistryOf(cfg)
	cfg, origins = throughRegistry(cfg, origins, request.Subnet)
	return cluster.Options{
		Selection:  sessionOptions(cfg, nil),
		Request:    request,
		Manifests:  manifestsOf(&cfg),
		Bundle:     cfg.Bundle,
		KeepImages: cfg.KeepImages,
		Registry:   registry,
		APIPort:    cfg.APIServerPort, Publish: origins["apiServerPort"].Source != config.FromDefault,
		MasterArgs: cfg.Args(config.Master, origins), WorkerArgs: cfg.Args(config.Worker, origins),
		LoadArgs: cfg.Args(config.Bootstrap, origins),
	}, nil
}

// throughRegistry returns the settings of the nodes: they pull through the local
// registry, which pulls from the mirrors of the settings. If neither the user nor the
// cluster's record sets localRegistry or registryMirrors, the settings of the nodes do not
// change.
func throughRegistry(cfg config.Config, origins config.Origins, subnet netip.Prefix) (config.Config, config.Origins) {
	if origins["localRegistry"].Source == config.FromDefault &&
		origins["registryMirrors"].Source == config.FromDefault {
		return cfg, origins
	}
	origins = maps.Clone(origins)
	origins["registryMirrors"] = config.Origin{Source: config.FromCluster} // also no mirrors, after there were some
	if cfg.LocalRegistry != 0 {
		cfg.RegistryMirrors = localregistry.Through(topology.RegistryAddr(subnet).String(), cfg.LocalRegistry,
			cfg.RegistryMirrors)
	}
	return cfg, origins
}

// nodesOf returns the requested nodes, without the subnet.
func nodesOf(cfg config.Config) topology.Request {
	r := topology.Request{ControlPlanes: cfg.Masters, Workers: cfg.Workers, HostImage: cfg.HostImage}
	for _, n := range cfg.Nodes {
		for i := range n.Count {
			one := nodeSpec(n)
			if n.Name != "" && n.Count > 1 {
				one.Name = fmt.Sprintf("%s-%d", n.Name, i+1)
			}
			r.Nodes = append(r.Nodes, one)
		}
	}
	return r
}

func nodeSpec(n config.NodeEntry) topology.Spec {
	return topology.Spec{
		Name: n.Name, Role: topology.Role(n.Role), Address: n.Address, HostImage: n.HostImage, Args: n.Args(),
		Ports: n.Settings.NodePorts, Mounts: n.Settings.NodeMounts,
		NanoCPUs: n.Settings.NodeCPUs.ScaledValue(resource.Nano), Memory: n.Settings.NodeMemory.Value(),
		Disk: n.Settings.NodeDisk.Value(),
	}
}

// manifestsOf lists the manifests of this machine, and names them in cfg as hosts find them.
func manifestsOf(cfg *config.Config) (all []cluster.ManifestFile) {
	hand := func(path, name string) string {
		if !extension.IsPath(path) {
			return path
		}
		on := "/etc/kube-bootstrap-manifests/" + name + ".yaml"
		all = append(all, cluster.ManifestFile{Path: path, On: on})
		return on
	}
	cfg.CNIPlugin = hand(cfg.CNIPlugin, "network")
	cfg.Addons = slices.Clone(cfg.Addons)
	for i, name := range cfg.Addons {
		cfg.Addons[i] = hand(name, fmt.Sprintf("addon-%d", i+1))
	}
	return all
}

// checkManifests reads each before there is a host.
func checkManifests(all []cluster.ManifestFile) error {
	return host.Each(all, func(m cluster.ManifestFile) error {
		text, err := os.ReadFile(m.Path)
		if err == nil {
			err = addon.CheckManifest(text)
		}
		if err != nil {
			return &step.Problem{
				Name: "manifest", Text: fmt.Sprintf("manifest %s: %v", m.Path, err),
				Remedy: "give the path of a manifest",
			}
		}
		return nil
	})
}

// checkDownloads downloads the manifests with a URL before images are built. The hosts of an
// existing cluster have their own copies.
func checkDownloads(ctx context.Context, cfg config.Config) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	return host.Each(append([]string{cfg.CNIPlugin}, cfg.Addons...), func(name string) error {
		from := addon.Where(name)
		if !extension.IsURL(from) {
			return nil
		}
		text, err := addon.Download(ctx, from)
		if err == nil {
			err = addon.CheckManifest(text)
		}
		if err != nil {
			return &step.Problem{
				Name: "manifest", Text: fmt.Sprintf("manifest %s: %v", from, err),
				Remedy: "correct the URL, or give the path of a copy of the manifest",
			}
		}
		return nil
	})
}

// withBalancedAddresses gives metallb the end of the nodes' network, unless the user gave addresses.
func withBalancedAddresses(cfg config.Config, origins config.Origins) config.Config {
	const name = "loadBalancerAddresses"
	if origins[name].Source != config.FromDefault || !slices.Contains(cfg.Addons, extension.AddonMetalLB) {
		return cfg
	}
	if first, last := topology.BalancedAddrs(cfg.DindSubnet.IPv4()); first.Less(last) {
		cfg.LoadBalancerAddresses = []addresses.Range{{First: first, Last: last}}
		origins[name] = config.Origin{Source: config.FromCluster}
	}
	return cfg
}

// withFreeSubnet gives a new cluster a free network for its nodes, unless the user chose one.
// Until the caller calls release, no other run chooses this network.
func withFreeSubnet(
	ctx context.Context, cfg config.Config, origins config.Origins,
) (_ config.Config, release func(), err error) {
	const name = "dindSubnet"
	if origins[name].Source != config.FromDefault {
		return cfg, func() {}, nil
	}
	subnet, release, err := cluster.FreeSubnet(ctx, sessionOptions(cfg, nil))
	if err != nil {
		return cfg, nil, exit.Firm(err)
	}
	cfg.DindSubnet, origins[name] = config.Networks{subnet}, config.Origin{Source: config.FromCluster}
	return cfg, release, nil
}

// sessionOptions selects the nodes: the machines of the file, or containers on an engine.
func sessionOptions(cfg config.Config, ask ssh.Questions) session.Selection {
	if hasMachines(cfg) {
		return session.Selection{Name: cfg.Name, Provider: machinesOf(cfg, ask)}
	}
	engine := docker.Choice{Address: cfg.DockerHost, Context: cfg.DockerContext}
	return session.Selection{Name: cfg.Name, Provider: containers.EngineChoice{Choice: engine}}
}
