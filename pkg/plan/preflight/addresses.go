package preflight

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func addressProblem(_ context.Context, h request) error {
	found, err := links.All()
	if err != nil {
		return err
	}
	if name := h.Config.NetInterface; name != "" && !slices.ContainsFunc(found, func(l links.Link) bool { return l.Name == name }) {
		return &step.Problem{Name: "net-interface", Text: fmt.Sprintf("netInterface: %s: this interface does not exist", name),
			Remedy: "use one of: " + names(found)}
	}
	if h.DetectErr != nil {
		return &step.Problem{Name: "ip-address", Text: "cannot detect the address of this host: " + h.DetectErr.Error(),
			Remedy: "give it with --ip-address or IP_ADDRESS"}
	}
	for _, l := range found {
		for _, a := range l.Addrs {
			if a.Addr().String() == h.Config.IPAddress {
				return nil
			}
		}
	}
	remedy := "give an address of this host with --ip-address or IP_ADDRESS"
	if h.KeepsAddress() {
		remedy = "assign this address to the host again, because the address of a control plane cannot change"
	}
	return &step.Problem{Name: "ip-address", Text: fmt.Sprintf("ipAddress: %s: no interface has this address", h.Config.IPAddress), Remedy: remedy}
}

func names(found []links.Link) string {
	var all []string
	for _, l := range found {
		all = append(all, l.Name)
	}
	return strings.Join(all, ", ")
}

// overlapProblem compares the pod and service networks with the host's
// routes. It ignores docker0, which moves into the pod network, and flannel's
// links.
func overlapProblem(_ context.Context, h request) error {
	routes, err := links.Routes()
	if err != nil {
		return err
	}
	var problems []*step.Problem
	for field, cidr := range map[string]string{"flannelNetwork": h.Config.FlannelNetwork, "serviceNetwork": h.Config.ServiceNetwork} {
		network, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue // reported by the validation of the configuration
		}
		for _, r := range routes {
			if strange(h.Host, r) && r.Dst.Overlaps(network) {
				problems = append(problems, &step.Problem{Name: "network-overlap",
					Text:   fmt.Sprintf("%s: %s overlaps the route to %s on %s", field, cidr, r.Dst, r.Link),
					Remedy: "choose another network"})
			}
		}
	}
	return joinProblems(problems)
}

func strange(h *local.Host, r links.Route) bool {
	ours := r.Link == "docker0" || strings.HasPrefix(r.Link, "flannel") || h.Saved.Installed()
	return r.Dst.Bits() > 0 && !ours
}

func portProblem(_ context.Context, h request) error {
	if h.Saved.Installed() {
		return nil
	}
	ports := []int{10250, h.Config.BalancerPort, h.Config.BalancerPort + 1}
	if h.role == local.Master {
		ports = append(ports, h.Config.APIServerPort, 2379, 2380, 10257, 10259)
	}
	var problems []*step.Problem
	for _, port := range ports {
		if err := host.PortFree(port); err != nil {
			problems = append(problems, &step.Problem{Name: fmt.Sprintf("port-%d", port),
				Text:   fmt.Sprintf("port %d is in use: %v", port, err),
				Remedy: fmt.Sprintf("stop the process that listens there (`ss -ltnp 'sport = :%d'`)", port)})
		}
	}
	return joinProblems(problems)
}
