package preflight

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// balancedProblem returns a problem if the addresses for load balancers include
// one of this host, of docker0's network or of another node.
func balancedProblem(ctx context.Context, h request) error {
	ranges := h.Config.LoadBalancerRanges()
	if len(ranges) == 0 || h.role != local.Master || h.Config.Join {
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
	return joinProblems(balancedProblems(ranges, taken))
}

// takenRange is a range of addresses that a machine has.
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

func balancedProblems(ranges []addresses.Range, taken []takenRange) (problems []*step.Problem) {
	for _, r := range ranges {
		if i := slices.IndexFunc(taken, func(t takenRange) bool { return r.Overlaps(t.Range) }); i >= 0 {
			problems = append(problems, &step.Problem{Name: "load-balancer-addresses",
				Text:   fmt.Sprintf("loadBalancerAddresses: %s has an address %s: %s", r, taken[i].owner, taken[i].Range),
				Remedy: "choose addresses that no machine has"})
		}
	}
	return problems
}

// nodeAddresses returns the addresses of the nodes, or none if no API server
// answers.
func nodeAddresses(ctx context.Context, h request) (all []takenRange) {
	ctx, cancel := step.Checking(h.Limited(ctx))
	defer cancel()
	client, err := parts.Addons(h.Host).API.Client()
	if err != nil {
		return nil
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, n := range nodes.Items {
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type != corev1.NodeHostName {
				all = append(all, takenRange{"of node " + n.Name, addresses.Range{First: ip, Last: ip}})
			}
		}
	}
	return all
}
