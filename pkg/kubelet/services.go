package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// routeRecord contains the network to which kube-bootstrap created a route.
var routeRecord = host.Record[netip.Prefix]{Path: host.StateDir + "/service-route", Valid: func(p netip.Prefix) error {
	if !p.IsValid() || p != p.Masked() {
		return fmt.Errorf("%s is not a network", p)
	}
	return nil
}}

// ServiceRoute lets programs of the host reach Services where the host has no
// default route: the kernel refuses packets without a route before it applies the
// rules of kube-proxy. The API server is such a program, because it calls webhooks by
// their Services. On other hosts the default route is sufficient.
type ServiceRoute struct {
	Files    host.Files
	Services netip.Prefix
	NodeIP   netip.Addr // the source address
}

// Step is the step that creates the route.
func (r ServiceRoute) Step() step.Step {
	return step.Step{
		ID: "service-route", Name: "route Services where there is no default route",
		Check: func(context.Context) (step.Diff, error) { return r.diff() },
		Apply: func(context.Context) error {
			diff, err := r.diff()
			if err != nil || len(diff) == 0 {
				return err
			}
			if err := routeRecord.Write(r.Files, r.Services); err != nil {
				return err
			}
			return r.add()
		},
		Undo: func(context.Context) error { return r.remove() },
	}
}

// diff requires a route, and the record if kube-bootstrap created the route.
func (r ServiceRoute) diff() (step.Diff, error) {
	routes, err := links.Routes()
	if err != nil {
		return nil, err
	}
	covers := func(to links.Route) bool {
		return to.Dst.Bits() <= r.Services.Bits() && to.Dst.Contains(r.Services.Addr())
	}
	if !slices.ContainsFunc(routes, covers) {
		return step.Diff{fmt.Sprintf("route %s to lo, for kube-proxy's rules to see", r.Services)}, nil
	}
	if !r.createdIn(routes) {
		return nil, nil
	}
	return routeRecord.Diff(r.Files)
}

// createdIn reports whether kube-bootstrap created a route: only its own leads to lo.
func (r ServiceRoute) createdIn(routes []links.Route) bool {
	own := func(to links.Route) bool { return to.Link == "lo" && to.Dst == r.Services }
	return r.Files.Exists(routeRecord.Path) || slices.ContainsFunc(routes, own)
}

// Restore creates the route of Step again at boot. It does not look for a default
// route, which may be added later.
func (r ServiceRoute) Restore() error {
	if routes, err := links.Routes(); err != nil || !r.createdIn(routes) {
		return err
	}
	return r.add()
}

func (r ServiceRoute) add() error {
	if !r.NodeIP.IsValid() {
		return errors.New("the node's address is not known")
	}
	return links.AddLocalRoute(r.Services, r.NodeIP)
}

// remove relies on the record for the network: the settings may have been lost.
func (r ServiceRoute) remove() error {
	if routes, err := links.Routes(); err != nil || !r.createdIn(routes) {
		return err
	}
	kept, err := routeRecord.Read(r.Files)
	if host.Lost(err) {
		kept, err = r.Services, nil
	}
	if err == nil {
		err = links.DeleteRoute(links.Route{Dst: kept, Link: "lo"})
	}
	if err != nil {
		return err
	}
	return r.Files.Remove(routeRecord.Path)
}
