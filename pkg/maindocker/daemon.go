package maindocker

import (
	"context"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

// Daemon is the main Docker: its service, its API, and its daemon.json in
// Files.
type Daemon struct {
	Files  host.Files
	Units  initsystem.Units
	Engine func() *docker.Engine
}

// runningDiff compares the settings of the running Docker with the lease,
// because Docker may not have read the file since its change.
func (d Daemon) runningDiff(ctx context.Context, lease subnet.Lease) (diff step.Diff, err error) {
	if Interrupted(d.Files) {
		diff = append(diff, fmt.Sprintf("finish the restart of Docker, with %d containers",
			len(readPending(d.Files).Containers)))
	}
	network, err := d.networkDiff(ctx, lease)
	if err != nil {
		return nil, err
	}
	_, ok, err := links.Find(linkName)
	if err == nil && !ok {
		network = append(network, "make docker0")
	}
	return append(diff, network...), err
}

// networkDiff compares Docker's own description of its bridge network.
func (d Daemon) networkDiff(ctx context.Context, lease subnet.Lease) (step.Diff, error) {
	docker := d.Engine()
	if err := docker.Answers(ctx); err != nil {
		return step.DiffOf(err, "start Docker")
	}
	net, ok, err := docker.Network(ctx, "bridge")
	if err != nil || !ok || len(net.IPAM.Config) == 0 {
		return step.Diff{"restart Docker: it has no bridge network"}, err
	}
	ipam := net.IPAM.Config[0]
	if ipam.Subnet == lease.Subnet.Masked() && ipam.Gateway == lease.Subnet.Addr() &&
		ipam.IPRange == lowerHalf(lease.Subnet) &&
		net.Options["com.docker.network.driver.mtu"] == fmt.Sprint(lease.MTU) &&
		net.Options["com.docker.network.bridge.enable_ip_masquerade"] == "false" {
		return nil, nil
	}
	return step.Diff{fmt.Sprintf("restart Docker: its bridge network is %s", ipam.Subnet)}, nil
}

// NeedsNetfilter reports whether Docker needs bridged packets to pass the
// firewall: to isolate containers of one network, or to forward published
// ports without a proxy. It returns true if Docker does not answer.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/libnetwork/drivers/bridge/bridge_linux.go#L840-L842
func (d Daemon) NeedsNetfilter(ctx context.Context) bool {
	owner, err := readSettings(d.Files)
	if err != nil || owner["icc"] == false || owner["userland-proxy"] == false {
		return true
	}
	networks, err := d.Engine().Networks(ctx)
	return err != nil || slices.ContainsFunc(networks, func(n docker.Network) bool {
		return n.Options["com.docker.network.bridge.enable_icc"] == "false"
	})
}
