package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// serviceRouteFile holds the network that we made a route to.
const serviceRouteFile = host.StateDir + "/service-route"

// RouteServices lets programs of the host reach Services where the host has no
// default route: the kernel refuses what it knows no route for before the rules
// of kube-proxy see it. The API server is such a program: it calls webhooks by
// their Services. Elsewhere the default route does the same.
func (k Kubelet) RouteServices(services netip.Prefix) step.Step {
	return step.Step{
		Name: "route Services where there is no default route",
		Check: func(context.Context) (step.Diff, error) {
			missing, err := lacksRoute(services)
			if err != nil || !missing {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("route %s to lo, for kube-proxy's rules to see", services)}, nil
		},
		Apply: func(context.Context) error {
			missing, err := lacksRoute(services)
			if err != nil || !missing {
				return err
			}
			if err := k.Files.Write(serviceRouteFile, []byte(services.String()), 0o600); err != nil {
				return err
			}
			return k.routeServices(services)
		},
		Undo: func(context.Context) error { return k.unrouteServices() },
	}
}

// RestoreServiceRoute is for the boot: it makes the route that RouteServices
// made. It does not look for a default route, which may come later.
func (k Kubelet) RestoreServiceRoute() error {
	services, ok, err := k.routedServices()
	if err != nil || !ok {
		return err
	}
	return k.routeServices(services)
}

func (k Kubelet) routeServices(services netip.Prefix) error {
	source, err := netip.ParseAddr(k.NodeIP)
	if err != nil {
		return fmt.Errorf("the node's address: %w", err)
	}
	return host.AddLocalRoute(services, source)
}

func (k Kubelet) unrouteServices() error {
	services, ok, err := k.routedServices()
	if err != nil || !ok {
		return err
	}
	return errors.Join(host.DeleteLocalRoute(services), k.Files.Remove(serviceRouteFile))
}

func (k Kubelet) routedServices() (services netip.Prefix, ok bool, err error) {
	data, err := k.Files.Read(serviceRouteFile)
	if errors.Is(err, fs.ErrNotExist) {
		return services, false, nil
	}
	if err == nil {
		services, err = netip.ParsePrefix(strings.TrimSpace(string(data)))
	}
	return services, err == nil, err
}

// lacksRoute reports whether no route leads to all of a network.
func lacksRoute(services netip.Prefix) (bool, error) {
	routes, err := host.Routes()
	for _, r := range routes {
		if r.Dst.Bits() <= services.Bits() && r.Dst.Contains(services.Addr()) {
			return false, nil
		}
	}
	return err == nil, err
}
