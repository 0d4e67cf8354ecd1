package parts

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/gate"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/firewall"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

// PodNetwork is the pod network of a host: flannel's, to which docker0 is attached, or that of another
// CNI plugin.
type PodNetwork struct {
	Flannel  flannel.NetworkConfig
	Flanneld flannel.Flanneld
	Bridge   maindocker.Bridge
	Overlay  maindocker.Overlay
	Filter   flannel.HostFilter
	Firewall firewall.Access

	Services netip.Prefix // the addresses of Services

	files      host.Files
	containerd containerd.Socket
	pods       netip.Prefix
	links      []string // that kube-bootstrap creates
	units      initsystem.Units
	limit      time.Duration // of a step
	leased     func() (subnet.Lease, error)
	assigned   bool // flannel assigns the subnets of hosts
	own, other bool // pods are attached to docker0; another CNI plugin has them. Both if the settings were lost
}

func newNetwork(h *local.Host, role string, docker maindocker.Daemon) PodNetwork {
	pods, balanced := h.Config.FlannelNetwork.IPv4(), flannelEtcd(h.Files, local.BalancedEtcd(h))
	lease := fitted(h.Files, h.Lease)
	n := PodNetwork{
		Flannel:  flannel.NetworkConfig{CIDR: pods, Backend: h.Config.FlannelBackend, Own: h.Config.IPAddress},
		Flanneld: newFlanneld(h, balanced, docker),
		Bridge:   maindocker.Bridge{Docker: docker, Lease: lease},
		Overlay: maindocker.Overlay{
			Docker: docker, Lease: lease, Link: flannel.Link(h.Config.FlannelBackend),
			Hosts: HostNetwork(h.Config.IPAddress),
		},
		Filter: newFilter(h, role, balanced),
		Firewall: newFirewall(
			h.Files, h.Units, PublicPorts(role, h.Config.APIServerPort), h.Config.FlannelBackend, pods),
		Services: h.Config.ServiceNetwork.IPv4(), assigned: h.ManagesNetwork(),
		files: h.Files, containerd: h.CRISocket(), pods: pods, leased: h.Lease,
		units: h.Units, limit: h.Timeout(),
		own: h.ManagesNetwork() || h.Saved.Lost != nil, other: !h.ManagesNetwork() || h.Saved.Lost != nil,
	}
	if h.ManagesNetwork() {
		n.links = append(n.links, "docker0")
		if n.Overlay.Link != "" {
			n.links = append(n.links, n.Overlay.Link)
		}
	}
	return n
}

// OnDocker0 returns s, which is excluded unless pods are attached to docker0. If the settings were
// lost, turndown undoes the steps of both kinds of network.
func (n PodNetwork) OnDocker0(s step.Step) step.Step { return s.If(n.own) }

// Leases reports whether each host has a subnet of flannel.
func (n PodNetwork) Leases() bool { return n.assigned }

// Reserved returns the networks that Docker must not give to others, by the names of their settings.
func (n PodNetwork) Reserved() maindocker.ClusterNetworks {
	return maindocker.ClusterNetworks{"flannelNetwork": n.pods, "serviceNetwork": n.Services}
}

// OtherCNI is the step that leaves the pod network to another CNI plugin. It is excluded if pods are
// attached to docker0.
func (n PodNetwork) OtherCNI() step.Step {
	return containerd.LeaveCNI(n.files, n.containerd, n.pods).If(n.other)
}

// CNI is the step that writes the CNI configuration.
func (n PodNetwork) CNI() step.Step { return n.OnDocker0(containerd.WriteCNI(n.files, n.Bridge.Lease)) }

// KeepPods is the step that removes pods with addresses of an earlier subnet.
func (n PodNetwork) KeepPods() step.Step {
	return n.OnDocker0(containerd.FollowLease(n.files, n.containerd, n.Bridge.Lease))
}

// KeepHostPorts is the step that keeps the host ports of pods open.
func (n PodNetwork) KeepHostPorts() step.Step { return n.OnDocker0(containerd.KeepHostPorts(n.files)) }

// KeepSysctls sets the sysctls of the links that kube-bootstrap creates. It
// changes no other links, because it could not restore the user's values, and
// none of another CNI plugin.
func (n PodNetwork) KeepSysctls() step.Step { return kubelet.KeepSysctls(n.files, n.links...) }

// BootUnit is the step that restores the network at boot. systemd starts and stops
// nothing while it reads the unit, so the step does not run beside the restart of
// Docker.
func (n PodNetwork) BootUnit() step.Step {
	return maindocker.BootUnit(n.files, n.units, local.Binary, n.limit)
}

// IsNew reports whether docker0 still is to move, and the host has no CNI configuration.
func (n PodNetwork) IsNew() bool {
	_, err := n.leased()
	return err != nil && containerd.CNIProblems(n.files, false) == nil
}

// fitted returns the lease of this host, as docker0 and the pods use it.
func fitted(files host.Files, lease func() (subnet.Lease, error)) func() (subnet.Lease, error) {
	return func() (subnet.Lease, error) {
		l, err := lease()
		if err != nil {
			return l, err
		}
		return maindocker.Fit(files, l)
	}
}

func newFlanneld(h *local.Host, balanced flannel.EtcdAccess, docker maindocker.Daemon) flannel.Flanneld {
	return flannel.Flanneld{
		Docker: local.BootstrapDocker, Files: h.Files, Image: h.Image("flannel"), Etcd: balanced,
		Host: h.Config.HostName, PublicIP: h.Config.IPAddress,
		IPMasq: h.Config.FlannelIPMasq, Backend: h.Config.FlannelBackend,
		SubnetDir: h.Config.FlannelSubnetDir, RestartPolicy: h.Config.RestartPolicy,
		Network: h.Config.FlannelNetwork.IPv4(), KeepModule: keepModule(h.Files, docker),
	}
}

// flannelEtcd returns the access of flanneld to etcd, by the URL of the balancer.
func flannelEtcd(files host.Files, balanced string) flannel.EtcdAccess {
	return flannel.EtcdAccess{
		Files: files, Endpoints: []string{balanced},
		CA: join.EtcdCAFile, Cert: join.FlannelCertFile, Key: join.FlannelKeyFile,
	}
}

// HostNetwork returns the network of the interface that has an address. It is invalid if
// no interface has it.
func HostNetwork(ip netip.Addr) netip.Prefix {
	found, _ := links.All() // preflight reports errors
	for _, l := range found {
		for _, a := range l.Addrs {
			if a.Addr() == ip {
				return a.Masked()
			}
		}
	}
	return netip.Prefix{}
}

// newFilter returns the filter of packets between hosts.
func newFilter(h *local.Host, role string, balanced flannel.EtcdAccess) flannel.HostFilter {
	f := flannel.HostFilter{
		Etcd: balanced, PublicIP: h.Config.IPAddress,
		Backend: h.Config.FlannelBackend, Network: h.Config.FlannelNetwork.IPv4(),
		Trusted: h.Config.TrustedNetworks, KubeletPort: kubelet.Port, ControlPlanes: controlPlaneAddresses,
	}
	if role == local.ControlPlane {
		f.PeerPort, f.ClientPort = etcd.PeerPort, etcd.ClientPort
	}
	return f
}

// PublicPorts returns the TCP ports at which the kubelet and the control plane of this host
// accept connections from other hosts.
func PublicPorts(role string, apiServer int) []int {
	ports := []int{kubelet.Port}
	if role == local.ControlPlane {
		ports = append(ports, apiServer, local.BundlePort(apiServer), etcd.ClientPort, etcd.PeerPort, gate.Port)
	}
	return ports
}

// newFirewall returns what firewalld and ufw permit on this host, in addition to its public ports.
func newFirewall(
	files host.Files, units initsystem.Units, public []int, backend string, pods netip.Prefix,
) firewall.Access {
	tcp, udp := append(public, 10256, 7947), []int{7947} // of kube-proxy, and of MetalLB
	if port, ok := flannel.OverlayPorts[backend]; ok {
		udp = append(udp, port)
	}
	a := firewall.Access{Files: files, Units: units, Pods: pods}
	for _, port := range tcp {
		a.Ports = append(a.Ports, firewall.Port{Number: port, Protocol: "tcp"})
	}
	for _, port := range udp {
		a.Ports = append(a.Ports, firewall.Port{Number: port, Protocol: "udp"})
	}
	return a
}

func controlPlaneAddresses(ctx context.Context, client *clientv3.Client) (all []string, err error) {
	list, err := etcd.EverListed(ctx, client) // a former control plane asks etcd whether it still is one
	for _, e := range list {
		all = append(append(all, e.IP), e.Addresses...)
	}
	return all, err
}

// DockerBridge matches a bridge that Docker has created for a network.
var DockerBridge = regexp.MustCompile(`^(docker0|br-[0-9a-f]{12})$`)

// otherAddresses returns the IPv4 addresses of this host, other than its own and those of pods, that
// the kernel may choose for connections to other hosts.
func otherAddresses(own netip.Addr, pods netip.Prefix) (all []string) {
	found, _ := links.All() // preflight reports errors
	for _, l := range found {
		for _, a := range l.Addrs {
			ip := a.Addr()
			if l.Up && !DockerBridge.MatchString(l.Name) && ip.IsGlobalUnicast() && !pods.Contains(ip) && ip != own {
				all = append(all, ip.String())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
