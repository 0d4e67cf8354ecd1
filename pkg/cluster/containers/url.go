package containers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// LoadBalancerName returns the name of the container in front of the control planes.
// It contains a dot, which no host name does.
func LoadBalancerName(cluster string) string { return cluster + ".api" }

// URL returns the load balancer's own address if this machine has a route to the
// cluster's network. An engine in a virtual machine or on another machine has
// no such route. There, URL returns the published port.
func (p DockerProvider) URL(ctx context.Context, cluster string) (string, error) {
	loadBalancer, _, err := machines.Of(p.Engine, cluster).Attached(ctx, LoadBalancerName(cluster))
	if err != nil {
		return "", p.NoAnswer(err)
	}
	if !loadBalancer.Running {
		return "", &step.Problem{Name: "load-balancer-off",
			Text:   "container " + LoadBalancerName(cluster) + ", which leads to the control planes, does not run",
			Remedy: "run `kube-bootstrap cluster up --name " + cluster + "`"}
	}
	engine, err := p.Engine.MachineName(ctx)
	if err != nil {
		return "", err
	}
	if engine != "" {
		return publishedAt(engine, loadBalancer)
	}
	routes, err := links.Routes()
	if err != nil {
		return "", fmt.Errorf("routes: %w", err)
	}
	if slices.ContainsFunc(routes,
		func(r links.Route) bool { return r.Dst.Bits() > 0 && r.Dst.Contains(loadBalancer.Addr) }) {
		for inside := range loadBalancer.Ports {
			return "https://" + netip.AddrPortFrom(loadBalancer.Addr, inside).String(), nil
		}
	}
	return publishedAt("127.0.0.1", loadBalancer)
}

func publishedAt(address string, loadBalancer machines.Attached) (string, error) {
	for _, port := range loadBalancer.Ports {
		return "https://" + net.JoinHostPort(address, strconv.Itoa(int(port))), nil
	}
	return "", errors.New("the container in front of the control planes publishes no port")
}
