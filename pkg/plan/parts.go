package plan

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Image returns the reference of an image of the catalogue on this host.
func (h *Host) Image(name string) string {
	for _, img := range h.images {
		if img.Name == name {
			return img.Ref
		}
	}
	return image.Ref(h.versions, name)
}

// program returns the image that contains a Kubernetes component on this
// host.
func (h *Host) program(name string) string {
	if ref := image.ProgramRef(h.versions, name); ref != image.Ref(h.versions, "hyperkube") {
		return ref
	}
	return h.Image("hyperkube")
}

func (h *Host) bootstrap() bootstrapdocker.Daemon {
	return bootstrapdocker.Daemon{
		Files: h.Files, Units: h.Units,
		KeepImages: h.Config.KeepImages, WhileMainStopped: h.bridge().WhileStopped,
	}
}

func (h *Host) etcd() etcd.Member {
	return etcd.Member{
		Docker: bootstrapDocker, Files: h.Files, Image: h.Image("etcd"), Version: h.versions.Etcd,
		Name: h.Config.HostName, IP: h.Config.IPAddress, Addresses: h.addresses(), RestartPolicy: h.Config.RestartPolicy,
		CA:       controlplane.EtcdCA + ".crt",
		Cert:     controlplane.EtcdServer + ".crt",
		Key:      controlplane.EtcdServer + ".key",
		PeerCA:   controlplane.EtcdPeerCA + ".crt",
		PeerCert: controlplane.EtcdPeer + ".crt",
		PeerKey:  controlplane.EtcdPeer + ".key",
		PeerName: controlplane.PeerName, ExtraArgs: h.Config.ExtraArgs("etcd"),
		RootCert: controlplane.EtcdRoot + ".crt",
		RootKey:  controlplane.EtcdRoot + ".key",
		Peers:    h.others(),
	}
}

func (h *Host) etcdURL() string { return "https://" + net.JoinHostPort(h.Config.IPAddress, "2379") }

func (h *Host) network() flannel.Network {
	own, _ := netip.ParseAddr(h.Config.IPAddress) // validated by preflight
	return flannel.Network{CIDR: mustPrefix(h.Config.FlannelNetwork), Backend: h.Config.FlannelBackend, Own: own}
}

// flanneld returns flanneld's settings. It reaches etcd through the balancer.
func (h *Host) flanneld() flannel.Daemon {
	return flannel.Daemon{
		Docker: bootstrapDocker, Files: h.Files, Image: h.Image("flannel"), Endpoints: []string{h.balancedEtcd()},
		CA: join.EtcdCAFile, Cert: join.FlannelCertFile, Key: join.FlannelKeyFile, Host: h.Config.HostName,
		PublicIP: h.Config.IPAddress,
		IPMasq:   h.Config.FlannelIPMasq, Backend: h.Config.FlannelBackend,
		SubnetDir: h.Config.FlannelSubnetDir, RestartPolicy: h.Config.RestartPolicy,
		Network: mustPrefix(h.Config.FlannelNetwork), KeepModule: h.keepModule,
	}
}

func (h *Host) bridge() maindocker.Bridge {
	return maindocker.Bridge{
		Files: h.Files, Units: h.Units, Docker: mainDocker, Backend: h.Config.FlannelBackend, Hosts: h.hostNetwork(),
		Lease: func() (maindocker.Lease, error) {
			l, err := h.lease()
			return maindocker.Lease{Network: l.Network, Subnet: l.Subnet, MTU: l.MTU}, err
		},
	}
}

// hostNetwork returns the network of this host's interface. It is invalid if
// no interface has the address.
func (h *Host) hostNetwork() netip.Prefix {
	links, _ := host.Links() // preflight reports errors
	for _, l := range links {
		for _, a := range l.Addrs {
			if a.Addr().String() == h.Config.IPAddress {
				return a.Masked()
			}
		}
	}
	return netip.Prefix{}
}

func (h *Host) controlPlane() controlplane.ControlPlane {
	return controlplane.ControlPlane{
		Files: h.Files, HostName: h.Config.HostName, IP: h.Config.IPAddress, APIPort: h.Config.APIServerPort,
		ExtraNames: h.Config.TLSSANs, ServiceCIDR: mustPrefix(h.Config.ServiceNetwork), PodCIDR: h.podCIDR(), DNSDomain: h.Config.DNSDomain,
		Image: h.program, KubernetesVersion: h.versions.Kubernetes, ServerVersion: h.versions.ProgramVersion("kube-apiserver"),
		// The API server uses the etcd of this host, or another one if that is
		// down.
		EtcdEndpoints: []string{h.etcdURL(), h.balancedEtcd()}, Single: !h.several(), Joins: h.Config.Join,
		Sealed: h.etcd().HasData(), EtcdUser: etcd.HostUser(h.Config.HostName), LeafLife: h.leafLife(),
		ExtraArgs: h.Config.ExtraArgs,
	}
}

// publish is a deferred step, because it publishes certificates that an
// earlier step issues.
func (h *Host) publish() step.Step {
	return later("let hosts join", func() (step.Step, error) {
		clusterCA, err := h.Files.Read(join.ClusterCAFile)
		if err != nil {
			return step.Step{}, err
		}
		etcdCA, err := h.Files.Read(join.EtcdCAFile)
		if err != nil {
			return step.Step{}, err
		}
		way, err := h.registry.Marshal()
		if err != nil {
			return step.Step{}, err
		}
		return join.Publisher{
			API: kube.Kubeconfig(controlplane.AdminConf), Server: h.balancedAPI(), ClusterCA: clusterCA, EtcdCA: etcdCA,
			Settings: h.Config.Shared(), Registry: way,
		}.Publish(), nil
	})
}

func (h *Host) addons() addon.Addons {
	ca, _ := h.Files.Read(join.ClusterCAFile) // missing only before the certificates are issued, see applyAddons
	return addon.Addons{API: kube.Kubeconfig(controlplane.AdminConf), Settings: addon.Settings{
		ProxyImage: h.program("kube-proxy"), DNSImage: h.Image("coredns"), FlannelImage: h.Image("flannel"), Backend: h.Config.FlannelBackend,
		Server: h.balancedAPI(), DNSServer: h.dnsServer(),
		Forward: h.forward(), PodCIDR: h.Config.FlannelNetwork, DNSDomain: h.Config.DNSDomain, DNSIP: h.Config.DNSServerIP,
		ClusterCA: ca,
	}}
}

// dnsServer returns the API server for CoreDNS: host:port of a single control
// plane, or "" for the kubernetes Service, which several control planes need
// and which is usable slightly later.
func (h *Host) dnsServer() string {
	if h.several() {
		return ""
	}
	return net.JoinHostPort(h.Config.IPAddress, strconv.Itoa(h.Config.APIServerPort))
}

// forward returns the upstream of CoreDNS for names outside of the cluster,
// or "" on a host without a name server, where CoreDNS would otherwise refuse
// to start.
func (h *Host) forward() string {
	if h.kubelet(Master).HasResolver() {
		return "/etc/resolv.conf"
	}
	return ""
}

func (h *Host) applyAddons() step.Step {
	return later("apply kube-proxy and CoreDNS", func() (step.Step, error) {
		if _, err := h.Files.Read(join.ClusterCAFile); err != nil {
			return step.Step{}, err
		}
		return h.addons().Apply(), nil
	})
}

func (h *Host) node(kubeconfig string) node.Node {
	agent := h.kubelet(Worker)
	return node.Node{API: kube.Kubeconfig(kubeconfig), Name: h.Config.HostName, Explain: agent.Explain, Started: agent.StartedAt}
}

// later returns a step that can only be built once earlier steps have been
// applied. Before that, its Check returns a Diff.
func later(name string, build func() (step.Step, error)) step.Step {
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			s, err := build()
			if errors.Is(err, fs.ErrNotExist) {
				return step.Diff{name}, nil
			}
			if err != nil {
				return nil, err
			}
			return s.Check(ctx)
		},
		Apply: func(ctx context.Context) error {
			s, err := build()
			if err != nil {
				return err
			}
			return s.Apply(ctx)
		},
	}
}
