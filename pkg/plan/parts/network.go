package parts

import (
	"context"
	"net/netip"
	"regexp"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/gate"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/firewall"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// OnDocker0 returns s if pods are attached to docker0, and otherwise an empty
// step. If the settings were lost, turndown undoes the steps of both kinds of
// network.
func OnDocker0(h *local.Host, s step.Step) step.Step {
	return s.If(h.OwnNetwork() || h.Saved.Lost != nil)
}

// podCIDR returns the network that the controller manager divides among the
// nodes for another CNI plugin. It is invalid if pods are attached to
// docker0, because flannel then assigns the subnets.
func podCIDR(h *local.Host) netip.Prefix {
	if h.OwnNetwork() {
		return netip.Prefix{}
	}
	return h.Config.FlannelNetwork.IPv4()
}

// NetworkManifest returns the manifest of another CNI plugin.
func NetworkManifest(h *local.Host) Manifest {
	return Manifest{h, "cniPlugin", addon.Where(h.Config.CNIPlugin), host.StateDir + "/network.yaml"}
}

// HostFilter returns the filter of packets between hosts.
func HostFilter(h *local.Host, role string) flannel.HostFilter {
	f := flannel.HostFilter{
		Etcd: FlannelEtcd(h), PublicIP: h.Config.IPAddress, Backend: h.Config.FlannelBackend, Network: h.Config.FlannelNetwork.IPv4(),
		Trusted: h.Config.TrustedNetworks, KubeletPort: kubelet.Port, ControlPlanes: controlPlaneAddresses,
	}
	if role == local.Master {
		f.PeerPort, f.ClientPort = etcd.PeerPort, etcd.ClientPort
	}
	return f
}

// PublicPorts returns the TCP ports at which the kubelet and the control plane of this host
// accept connections from other hosts.
func PublicPorts(h *local.Host, role string) []int {
	ports := []int{kubelet.Port}
	if role == local.Master {
		ports = append(ports, h.Config.APIServerPort, local.BundlePort(h), etcd.ClientPort, etcd.PeerPort, gate.Port)
	}
	return ports
}

// Firewall returns what firewalld and ufw permit on this host.
func Firewall(h *local.Host, role string) firewall.Access {
	tcp, udp := append(PublicPorts(h, role), 10256, 7947), []int{7947} // of kube-proxy, and of MetalLB
	if port, ok := flannel.OverlayPorts[h.Config.FlannelBackend]; ok {
		udp = append(udp, port)
	}
	a := firewall.Access{Files: h.Files, Units: h.Units, Pods: h.Config.FlannelNetwork.IPv4()}
	for _, port := range tcp {
		a.Ports = append(a.Ports, firewall.Port{Number: port, Protocol: "tcp"})
	}
	for _, port := range udp {
		a.Ports = append(a.Ports, firewall.Port{Number: port, Protocol: "udp"})
	}
	return a
}

func controlPlaneAddresses(ctx context.Context, client *clientv3.Client) (all []string, err error) {
	list, err := etcd.Listed(ctx, client)
	for _, e := range list {
		all = append(append(all, e.IP), e.Addresses...)
	}
	return all, err
}

// DockerBridge matches a bridge that Docker has created for a network.
var DockerBridge = regexp.MustCompile(`^(docker0|br-[0-9a-f]{12})$`)

// otherAddresses returns the IPv4 addresses of this host, other than its own, that
// the kernel may choose for connections to other hosts.
func otherAddresses(h *local.Host) (all []string) {
	found, _ := links.All() // preflight reports errors
	network := h.Config.FlannelNetwork.IPv4()
	for _, l := range found {
		for _, a := range l.Addrs {
			ip := a.Addr()
			if l.Up && !DockerBridge.MatchString(l.Name) && ip.IsGlobalUnicast() && !network.Contains(ip) && ip != h.Config.IPAddress {
				all = append(all, ip.String())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
