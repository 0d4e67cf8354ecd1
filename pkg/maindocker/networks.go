package maindocker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/restart"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ClusterNetworks are the networks of the cluster by the name of their setting.
type ClusterNetworks map[string]netip.Prefix

// overlapping returns the networks of the cluster that overlap another one: "flannelNetwork: 10.1.0.0/16".
func (n ClusterNetworks) overlapping(other netip.Prefix) (all []string) {
	for _, setting := range slices.Sorted(maps.Keys(n)) {
		if n[setting].IsValid() && other.IsValid() && n[setting].Overlaps(other) {
			all = append(all, fmt.Sprintf("%s: %s", setting, n[setting]))
		}
	}
	return all
}

// NetworkProblems returns a problem for each Docker network that overlaps a network of the
// cluster [network-overlap]. Packets to pods of other hosts would stay on this host.
func (n ClusterNetworks) NetworkProblems(ctx context.Context, engine *docker.Engine) error {
	all, err := engine.Networks(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, other := range all {
		if other.Name == "bridge" { // docker0
			continue
		}
		for _, subnet := range other.Subnets {
			for _, ours := range n.overlapping(subnet) {
				errs = append(errs,
					&step.Problem{Name: "network-overlap",
						Text: ours + " overlaps the Docker network " + other.Name + fmt.Sprintf(" (%s)", subnet),
						Remedy: "remove it (`docker network rm " + other.Name +
							"`) and create it again with another --subnet"})
			}
		}
	}
	return errors.Join(errs...)
}

// PoolProblems returns a problem if Docker may give an address range of the cluster to a new
// network [network-overlap].
func (n ClusterNetworks) PoolProblems(ctx context.Context, files host.Files, engine *docker.Engine) error {
	pools, err := poolsOf(ctx, files, engine)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pools {
		for _, ours := range n.overlapping(p) {
			errs = append(errs,
				&step.Problem{Name: "network-overlap",
					Text: ours + fmt.Sprintf(" overlaps %s, from which Docker takes new networks", p),
					Remedy: "choose another network, or set other default-address-pools in " + daemonJSON +
						" and restart Docker"})
		}
	}
	return errors.Join(errs...)
}

// poolsOf returns the networks from which Docker takes new ones. If Docker reports
// invalid pools, it has read daemon.json again, and its pools are those of daemon.json.
func poolsOf(ctx context.Context, files host.Files, engine *docker.Engine) (pools []netip.Prefix, err error) {
	info, err := engine.Facts(ctx)
	if err != nil || len(info.DefaultAddressPools) == 0 {
		return dockerPools, err
	}
	for _, p := range info.DefaultAddressPools {
		if !p.Base.IsValid() {
			now, err := readSettings(files)
			return poolBases(now), err
		}
		pools = append(pools, p.Base)
	}
	return pools, nil
}

// poolBases returns the networks of the user's default-address-pools.
func poolBases(owner settings) (all []netip.Prefix) {
	pools, _ := owner["default-address-pools"].([]any)
	for _, pool := range pools {
		one, _ := pool.(map[string]any)
		base, _ := one["base"].(string)
		if p, err := netip.ParsePrefix(base); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// dockerPools are the pools of a Docker without default-address-pools. Once docker0 has moved, a network
// of the user can get the first one.
// https://github.com/moby/moby/issues/40388
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/libnetwork/ipamutils/utils.go#L10-L18
var dockerPools = []netip.Prefix{
	netip.MustParsePrefix("172.17.0.0/16"), netip.MustParsePrefix("172.18.0.0/15"),
	netip.MustParsePrefix("172.20.0.0/14"), netip.MustParsePrefix("172.24.0.0/13"),
	netip.MustParsePrefix("192.168.0.0/16"),
}

// AutoRemoved returns the names of running containers that Docker removes when it stops.
func AutoRemoved(ctx context.Context, engine *docker.Engine) (names []string, err error) {
	all, err := restart.Running(ctx, engine)
	for _, c := range all {
		if c.AutoRemove {
			names = append(names, c.Name)
		}
	}
	return names, err
}

// RestartProblem returns a problem if a restart of Docker would remove containers [auto-remove].
func RestartProblem(ctx context.Context, engine *docker.Engine) error {
	names, err := AutoRemoved(ctx, engine)
	if err != nil || len(names) == 0 {
		return err
	}
	return &step.Problem{
		Name: "auto-remove", Text: "Docker must be restarted, and then removes containers that were started with " +
			"--rm, with their data: " + strings.Join(names, ", "),
		Remedy: "stop them, or start them again without --rm; they are lost if you ignore this",
	}
}
