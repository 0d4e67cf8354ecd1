package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// routeRecord has the network that we made a route to.
var routeRecord = host.Record[netip.Prefix]{Path: host.StateDir + "/service-route", Valid: func(p netip.Prefix) error {
	if !p.IsValid() || p != p.Masked() {
		return fmt.Errorf("%s is not a network", p)
	}
	return nil
}}

// RouteServices lets programs of the host reach Services where the host has no
// default route: the kernel refuses what it knows no route for before the rules
// of kube-proxy see it. The API server is such a program: it calls webhooks by
// their Services. Elsewhere the default route does the same.
func (k Kubelet) RouteServices(services netip.Prefix) step.Step {
	return step.Step{
		Name: "route Services where there is no default route",
		Check: func(context.Context) (step.Diff, error) {
			if missing, err := lacksRoute(services); err != nil || missing {
				return step.Diff{fmt.Sprintf("route %s to lo, for kube-proxy's rules to see", services)}, err
			}
			return k.routeDiff(services)
		},
		Apply: func(context.Context) error {
			missing, err := lacksRoute(services)
			if err != nil {
				return err
			}
			diff, err := k.routeDiff(services)
			if err != nil || !missing && len(diff) == 0 {
				return err
			}
			if err := routeRecord.Write(k.Files, services); err != nil {
				return err
			}
			return k.routeServices(services)
		},
		Undo: func(context.Context) error { return k.unrouteServices(services) },
	}
}

// routeDiff requires the record if kube-bootstrap created the route.
func (k Kubelet) routeDiff(services netip.Prefix) (step.Diff, error) {
	ours, err := k.ownRoute(services)
	if err != nil || !ours {
		return nil, err
	}
	return routeRecord.Diff(k.Files)
}

// ownRoute reports whether we made a route to Services: only that one leads to
// loopback.
func (k Kubelet) ownRoute(services netip.Prefix) (bool, error) {
	routes, err := host.Routes()
	return k.Files.Exists(routeRecord.Path) || slices.ContainsFunc(routes, func(r host.Route) bool {
		return r.Link == "lo" && r.Dst == services
	}), err
}

// RestoreServiceRoute is for the boot: it makes the route that RouteServices
// made. It does not look for a default route, which may come later.
func (k Kubelet) RestoreServiceRoute(services netip.Prefix) error {
	if ours, err := k.ownRoute(services); err != nil || !ours {
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

// unrouteServices also removes the route to a network that the record names:
// the settings may have been lost.
func (k Kubelet) unrouteServices(services netip.Prefix) error {
	if ours, err := k.ownRoute(services); err != nil || !ours {
		return err
	}
	kept, err := routeRecord.Read(k.Files)
	if host.Lost(err) {
		kept, err = services, nil
	}
	return errors.Join(err, host.DeleteLocalRoute(kept), k.Files.Remove(routeRecord.Path))
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
