package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/firewall"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func placeProblem(ctx context.Context, h request) error {
	return errors.Join(hostNameProblem(h), addressProblem(ctx, h))
}

// hostNameProblem checks a detected name like one that is given, which the validation of the
// settings refuses. localhost is the name of a machine that has none.
func hostNameProblem(h request) error {
	name := h.Config.HostName
	must := config.HostName(name)
	if name == "localhost" || strings.HasPrefix(name, "localhost.") {
		must = "must be another one than that of every other host"
	}
	if must == "" || h.Saved.Installed() {
		return nil
	}
	return &step.Problem{Name: "host-name", Firm: true,
		Text:   fmt.Sprintf("hostName: the name of this host, %s, %s", name, must),
		Remedy: "give it another name with --host-name"}
}

func addressProblem(_ context.Context, h request) error {
	found, err := links.All()
	if err != nil {
		return err
	}
	var names []string
	for _, l := range found {
		names = append(names, l.Name)
	}
	if name := h.Config.NetInterface; name != "" && !slices.Contains(names, name) {
		return &step.Problem{Name: "net-interface",
			Text:   fmt.Sprintf("netInterface: %s: this interface does not exist", name),
			Remedy: "use one of: " + strings.Join(names, ", ")}
	}
	if h.DetectErr != nil {
		return &step.Problem{Name: "ip-address", Text: "cannot detect the address of this host: " + h.DetectErr.Error(),
			Remedy: "give it with --ip-address or IP_ADDRESS, or its interface with --net-interface"}
	}
	return AddressProblem(h.Host)
}

// AddressProblem returns the problem that no interface of this host has its address [ip-address]: it was given with an
// error, or has changed since.
func AddressProblem(h *local.Host) error {
	if parts.HostNetwork(h.Config.IPAddress).IsValid() {
		return nil
	}
	remedy := "give an address of this host with --ip-address or IP_ADDRESS"
	switch {
	case h.KeepsAddress():
		remedy = "assign this address to the host again, because the address of a control plane cannot change"
	case h.Saved.Role == local.Worker:
		remedy = "assign this address to the host again, or run `kube-bootstrap worker --ip-address` with another " +
			"address of it"
	}
	text := fmt.Sprintf("ipAddress: %s: no interface has this address", h.IP())
	return &step.Problem{Name: "ip-address", Text: text, Remedy: remedy}
}

// overlapProblem compares the pod and service networks with the host's
// routes. It ignores docker0, which moves into the pod network, the bridges of other Docker
// networks, which dockerProblem names, and flannel's links.
func overlapProblem(_ context.Context, h request) error {
	routes, err := links.Routes()
	if err != nil {
		return err
	}
	var problems []error
	for field, network := range h.parts.Network.Reserved() {
		for _, r := range routes {
			if strange(r, h.Saved.Installed()) && r.Dst.Overlaps(network) {
				problems = append(problems, &step.Problem{Name: "network-overlap",
					Text:   fmt.Sprintf("%s: %s overlaps the route to %s on %s", field, network, r.Dst, r.Link),
					Remedy: "choose another network"})
			}
		}
	}
	return errors.Join(problems...)
}

func strange(r links.Route, installed bool) bool {
	ours := parts.DockerBridge.MatchString(r.Link) || strings.HasPrefix(r.Link, "flannel") || installed
	return r.Dst.Bits() > 0 && !ours
}

func portProblem(_ context.Context, h request) error {
	if h.Saved.Installed() {
		return nil
	}
	ports := append(parts.PublicPorts(h.role, h.Config.APIServerPort), h.Config.BalancerPort, h.Config.BalancerPort+1)
	if h.role == local.ControlPlane {
		ports = append(ports, controlplane.ManagerPort, controlplane.SchedulerPort)
	}
	var problems []error
	for _, port := range ports {
		if err := host.PortFree(netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port))); err != nil {
			problems = append(problems, &step.Problem{Name: fmt.Sprintf("port-%d", port),
				Text:   fmt.Sprintf("port %d is in use: %v", port, err),
				Remedy: fmt.Sprintf("stop the process that listens there (`ss -ltnp 'sport = :%d'`)", port)})
		}
	}
	return errors.Join(problems...)
}

func firewalldProblem(ctx context.Context, h request) error {
	if !h.ManagesNetwork() {
		return nil
	}
	return firewall.Problem(ctx, h.parts.Network.Firewall)
}

// balancedProblem compares the addresses for load balancers with the addresses of machines.
func balancedProblem(ctx context.Context, h request) error {
	ranges := h.Config.LoadBalancerAddresses
	if len(ranges) == 0 || h.role != local.ControlPlane || h.Config.Join {
		return nil
	}
	found, err := links.All()
	if err != nil {
		return err
	}
	taken := nodeAddresses(ctx, h)
	for _, l := range found {
		for _, a := range l.Addrs {
			taken = append(taken, takenRange{"of " + l.Name + " of this host", linkRange(l.Name, a)})
		}
	}
	return errors.Join(balancedProblems(ranges, taken)...)
}

type takenRange struct {
	owner string // "of eth0 of this host"
	addresses.Range
}

// linkRange returns the whole network of docker0, whose other addresses are those
// of containers, and the own address of another link.
func linkRange(link string, a netip.Prefix) addresses.Range {
	if link == "docker0" {
		return addresses.Of(a)
	}
	return addresses.Range{First: a.Addr(), Last: a.Addr()}
}

func balancedProblems(ranges []addresses.Range, taken []takenRange) (problems []error) {
	for _, r := range ranges {
		if i := slices.IndexFunc(taken, func(t takenRange) bool { return r.Overlaps(t.Range) }); i >= 0 {
			problems = append(problems, &step.Problem{Name: "load-balancer-addresses",
				Text: fmt.Sprintf("loadBalancerAddresses: %s has an address %s: %s",
					r, taken[i].owner, taken[i].Range),
				Remedy: "choose addresses that no machine has"})
		}
	}
	return problems
}

// nodeAddresses returns none if no API server answers.
func nodeAddresses(ctx context.Context, h request) (all []takenRange) {
	ctx, cancel := step.Checking(h.Limited(ctx))
	defer cancel()
	nodes, _ := node.List(ctx, kube.Kubeconfig(controlplane.AdminConf))
	for _, n := range nodes {
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type != corev1.NodeHostName {
				all = append(all, takenRange{"of node " + n.Name, addresses.Range{First: ip, Last: ip}})
			}
		}
	}
	return all
}
